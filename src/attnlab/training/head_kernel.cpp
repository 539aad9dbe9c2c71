// The exponentials of a head's logits and the gradients that follow from them, without a logit leaving the cache.
//
// A strip of tokens at a time: logits, their exponentials e, Σe and Σe·w, while a tile of words is at hand; then,
// Σe being known, what the strip adds to the gradient of every word. All three products are made by one routine
// that keeps a block of its result in registers.
//
// Shapes: N tokens, n of a strip (STRIP), V words, v of a tile (TILE), D width. hidden (N, D) and weight (V, D) are
// contiguous and their rows filled up with zeros, N to a multiple of STRIP and D of LANES. In a strip, tokens lie
// beside one another: (D, n) and (V, n).

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

namespace {

#if defined(__AVX512F__)
constexpr int LANES = 16, COLUMNS = 4;
#elif defined(__AVX__)
constexpr int LANES = 8, COLUMNS = 2;
#else
constexpr int LANES = 4, COLUMNS = 4;
#endif
constexpr int ROWS = 4;  // of a block in registers; COLUMNS vectors wide
constexpr int64_t STRIP = 64, TILE = 96;

typedef float Vector __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t Whole __attribute__((vector_size(4 * LANES)));

inline Vector& at(float* place) { return *reinterpret_cast<Vector*>(place); }
inline const Vector& at(const float* place) { return *reinterpret_cast<const Vector*>(place); }

// The compiler may neither load a value again nor reckon with where it comes from.
inline void keep(Vector& x) {
#if defined(__x86_64__)
    asm("" : "+v"(x));
#elif defined(__aarch64__)
    asm("" : "+w"(x));
#else
    asm("" : "+m"(x));
#endif
}

// Memory that begins where a cache line does: a load across two takes twice as long.
template <typename T>
struct OnLines {
    typedef T value_type;
    T* allocate(size_t n) {
        void* place = std::aligned_alloc(64, (n * sizeof(T) + 63) / 64 * 64);
        if (!place) throw std::bad_alloc();
        return static_cast<T*>(place);
    }
    void deallocate(T* place, size_t) { std::free(place); }
};
typedef std::vector<float, OnLines<float>> Floats;

// A block of c = a·b, or what is added to it: ROWS rows, C vectors wide, over K. Two strides say where an element of
// a stands. A function of its own, so that it has all registers for itself.
template <int C, bool add>
__attribute__((noinline)) void block(int64_t K, const float* a, int64_t a_row, int64_t a_step, const float* b, int64_t b_step, float* c,
                  int64_t c_row) {
    Vector sum[ROWS][C];
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 8
        for (int j = 0; j < C; ++j) sum[r][j] = add ? at(c + r * c_row + j * LANES) : Vector{};
    for (int64_t k = 0; k < K; ++k) {
        Vector of_b[C];
#pragma GCC unroll 8
        for (int j = 0; j < C; ++j) keep(of_b[j] = at(b + k * b_step + j * LANES));
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 8
            for (int j = 0; j < C; ++j) sum[r][j] += a[r * a_row + k * a_step] * of_b[j];
    }
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 8
        for (int j = 0; j < C; ++j) at(c + r * c_row + j * LANES) = sum[r][j];
}

// ROWS whole rows of c.
template <bool add>
inline void product(int64_t width, int64_t K, const float* a, int64_t a_row, int64_t a_step, const float* b,
                    int64_t b_step, float* c, int64_t c_row) {
    int64_t j = 0;
    for (; j + COLUMNS * LANES <= width; j += COLUMNS * LANES)
        block<COLUMNS, add>(K, a, a_row, a_step, b + j, b_step, c + j, c_row);
    switch ((width - j) / LANES) {
        case 3: block<3, add>(K, a, a_row, a_step, b + j, b_step, c + j, c_row); break;
        case 2: block<2, add>(K, a, a_row, a_step, b + j, b_step, c + j, c_row); break;
        case 1: block<1, add>(K, a, a_row, a_step, b + j, b_step, c + j, c_row); break;
    }
}

// e^x to within two units of the last place for x up to 88, and 0 below -87.
inline Vector power_of_e(Vector x) {
    const Vector lowest = Vector{} - 87.0f;
    const auto gone = x < lowest;
    x = gone ? lowest : x;
    const Vector magic = Vector{} + 12582912.0f;  // with 1.5·2^23 added, a number's whole part is its last bits
    Vector shifted = x * 1.44269504f + magic;
    keep(shifted);
    const Vector n = shifted - magic;
    const Vector r = x - n * 0.693359375f + n * 2.12194440e-4f;  // x - n·ln 2, with ln 2 in two parts
    Vector p = Vector{} + 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    Whole bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + (127 << 23);  // 2^n
    Vector power;
    std::memcpy(&power, &bits, sizeof power);
    return gone ? Vector{} : p * power;
}

struct Head {
    const float* weight_VD;
    int64_t V, D;
    Floats last_vD;  // the last tile, filled up: words of zeros, whose exponentials are left out

    Head(const float* weight, int64_t V_, int64_t D_) : weight_VD(weight), V(V_), D(D_), last_vD(TILE * D_) {
        const int64_t begun = V / TILE * TILE;
        std::copy(weight + begun * D, weight + V * D, last_vD.begin());
    }
    int64_t words(int64_t v) const { return std::min(TILE, V - v); }
    const float* tile(int64_t v) const { return v + TILE <= V ? weight_VD + v * D : last_vD.data(); }
};

struct Strip {
    const Head& head;
    Floats hidden_Dn, scaled_nD, summed_Dn, shift_n, total_n;

    explicit Strip(const Head& of)
        : head(of), hidden_Dn(of.D * STRIP), scaled_nD(of.D * STRIP), summed_Dn(of.D * STRIP), shift_n(STRIP),
          total_n(STRIP) {}

    void take(const float* hidden_nD) {
        for (int64_t n = 0; n < STRIP; ++n)
            for (int64_t d = 0; d < head.D; ++d) hidden_Dn[d * STRIP + n] = hidden_nD[n * head.D + d];
        std::fill(shift_n.begin(), shift_n.end(), 0.0f);
        std::fill(total_n.begin(), total_n.end(), 0.0f);
        std::fill(summed_Dn.begin(), summed_Dn.end(), 0.0f);
    }

    void logits(int64_t v, float* out_vn) const {
        const float* weight_vD = head.tile(v);
        for (int64_t i = 0; i < TILE; i += ROWS)
            product<false>(STRIP, head.D, weight_vD + i * head.D, head.D, 1, hidden_Dn.data(), STRIP,
                           out_vn + i * STRIP, STRIP);
    }

    // The largest logit of every token.
    void shift(float* logits_vn) {
        std::fill(shift_n.begin(), shift_n.end(), -3e38f);
        for (int64_t v = 0; v < head.V; v += TILE) {
            logits(v, logits_vn);
            for (int64_t i = 0; i < head.words(v); ++i)
                for (int64_t n = 0; n < STRIP; ++n) shift_n[n] = std::max(shift_n[n], logits_vn[i * STRIP + n]);
        }
    }

    void exponentials(int64_t v, float* e_vn) {
        logits(v, e_vn);
        for (int64_t n = 0; n < STRIP; n += LANES) {
            const Vector shift = at(&shift_n[n]);
            Vector total{};
            for (int64_t i = 0; i < head.words(v); ++i)
                total += at(e_vn + i * STRIP + n) = power_of_e(at(e_vn + i * STRIP + n) - shift);
            at(&total_n[n]) += total;
        }
    }

    void sum(int64_t v, const float* e_vn) {
        for (int64_t d = 0; d < head.D; d += ROWS)
            product<true>(STRIP, TILE, head.tile(v) + d, 1, head.D, e_vn, STRIP, &summed_Dn[d * STRIP], STRIP);
    }

    // Σ share·w of every token, and into grad_VD Σ share·hidden of every word.
    void gradients(const float* hidden_nD, const float* e_Vn, float* grad_nD, float* grad_VD) {
        for (int64_t n = 0; n < STRIP; ++n)
            for (int64_t d = 0; d < head.D; ++d) {
                scaled_nD[n * head.D + d] = hidden_nD[n * head.D + d] / total_n[n];
                grad_nD[n * head.D + d] = summed_Dn[d * STRIP + n] / total_n[n];
            }
        const int64_t D = head.D, V = head.V;
        const float* const scaled = scaled_nD.data();
        for (int64_t v = 0; v < V; v += ROWS)
            product<true>(D, STRIP, e_Vn + v * STRIP, STRIP, 1, scaled, D, grad_VD + v * D, D);
    }
};

// `work(first, step)` on as many threads as PyTorch would use: strips first, first + step, …
template <typename Work>
void share_strips(int64_t strips, int64_t threads, const Work& work) {
    threads = std::max<int64_t>(1, std::min(threads, strips));
    std::vector<std::thread> others;
    for (int64_t i = 1; i < threads; ++i) others.emplace_back(work, i, threads);
    work(0, threads);
    for (auto& other : others) other.join();
}

}  // namespace

// Into total (N) goes Σe of every token and into shift (N) what was taken off its logits first: nothing, except in
// strips that are marked as large.
extern "C" void head_totals(const float* hidden_ND, const float* weight_VD, const uint8_t* large_S, float* shift_N,
                            float* total_N, int64_t N, int64_t V, int64_t D, int64_t threads) {
    const Head head(weight_VD, V, D);
    share_strips(N / STRIP, threads, [&](int64_t first, int64_t step) {
        Strip strip(head);
        Floats e_vn(TILE * STRIP);
        for (int64_t s = first; s < N / STRIP; s += step) {
            strip.take(hidden_ND + s * STRIP * D);
            if (large_S[s]) strip.shift(e_vn.data());
            for (int64_t v = 0; v < V; v += TILE) strip.exponentials(v, e_vn.data());
            std::copy(strip.shift_n.begin(), strip.shift_n.end(), shift_N + s * STRIP);
            std::copy(strip.total_n.begin(), strip.total_n.end(), total_N + s * STRIP);
        }
    });
}

// The same, and Σ share·w into grad_hidden (N, D) and Σ share·hidden into grad_weight, which has, for every thread, V
// rows filled up to a multiple of ROWS, and is zero at first.
extern "C" void head_gradients(const float* hidden_ND, const float* weight_VD, const uint8_t* large_S, float* shift_N,
                               float* total_N, float* grad_hidden_ND, float* grad_weight_VD, int64_t N, int64_t V,
                               int64_t D, int64_t threads) {
    const Head head(weight_VD, V, D);
    share_strips(N / STRIP, threads, [&](int64_t first, int64_t step) {
        thread_local Floats kept;  // fresh memory costs as much as a product
        kept.resize((V + TILE - 1) / TILE * TILE * STRIP);
        float* const e_Vn = kept.data();
        Strip strip(head);
        float* grad_VD = grad_weight_VD + first * ((V + ROWS - 1) / ROWS * ROWS) * D;
        for (int64_t s = first; s < N / STRIP; s += step) {
            const float* hidden_nD = hidden_ND + s * STRIP * D;
            strip.take(hidden_nD);
            if (large_S[s]) strip.shift(e_Vn);
            for (int64_t v = 0; v < V; v += TILE) {
                strip.exponentials(v, e_Vn + v * STRIP);
                strip.sum(v, e_Vn + v * STRIP);
            }
            strip.gradients(hidden_nD, e_Vn, grad_hidden_ND + s * STRIP * D, grad_VD);
            std::copy(strip.shift_n.begin(), strip.shift_n.end(), shift_N + s * STRIP);
            std::copy(strip.total_n.begin(), strip.total_n.end(), total_N + s * STRIP);
        }
    });
}
