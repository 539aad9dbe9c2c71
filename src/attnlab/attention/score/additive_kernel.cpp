// The pairs of the additive score, w·tanh(a + c) for every query and key, and their gradients.
//
// tanh(a + c) = 1 - 2r with r = 1 / (1 + e^(2a)·e^(2c)): the exponentials are taken once per token, and a pair
// costs a product and a division. In rows where an argument is too large for that, e^(2a + 2c) is taken pair by
// pair. Nothing per pair but the score is ever kept.
//
// Shapes, all contiguous: a (R, T, h), c (R, S, h), w (h), scores (R, T, S), for R rows of batch × heads. Inside
// a row, keys lie beside one another, (h, P), filled up to P, a multiple of what the processor takes at once.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

constexpr float LARGEST = 20.0f;  // e^(2·20)·e^(2·20) still fits, and tanh(20) is 1 to the last bit
constexpr int64_t AT_ONCE = 16;

struct Sizes {
    int64_t R, T, S, h;
    int64_t P() const { return (S + AT_ONCE - 1) / AT_ONCE * AT_ONCE; }
};

// One row's a and c as the formula wants them: exponentials, or, where one is too large, arguments.
struct Row {
    bool large;
    std::vector<float> a_Th, c_hP;

    explicit Row(const Sizes& n) : large(false), a_Th(n.T * n.h), c_hP(n.h * n.P()) {}

    void take(const float* a, const float* c, const Sizes& n) {
        float largest = 0;
        for (int64_t i = 0; i < n.T * n.h; ++i) largest = std::max(largest, std::fabs(a[i]));
        for (int64_t i = 0; i < n.S * n.h; ++i) largest = std::max(largest, std::fabs(c[i]));
        large = largest > LARGEST;
        for (int64_t i = 0; i < n.T * n.h; ++i) a_Th[i] = 2 * a[i];
        std::fill(c_hP.begin(), c_hP.end(), 0.0f);
        for (int64_t s = 0; s < n.S; ++s)
            for (int64_t i = 0; i < n.h; ++i) c_hP[i * n.P() + s] = 2 * c[s * n.h + i];
        if (large) return;
        for (float& x : a_Th) x = std::exp(x);
        for (float& x : c_hP) x = std::exp(x);
    }
};

// e^(2a + 2c), from the exponentials or the arguments of a row. e^88 is the last that fits.
template <bool large>
inline float power(float a, float c) {
    return large ? std::exp(std::min(a + c, 80.0f)) : a * c;
}

template <bool large>
void scores_of_row(const Row& row, const float* w, float* scores, float* out_P, const Sizes& n) {
    const int64_t P = n.P();
    float sum = 0;
    for (int64_t i = 0; i < n.h; ++i) sum += w[i];
    for (int64_t t = 0; t < n.T; ++t) {
        std::fill(out_P, out_P + P, sum);
        for (int64_t i = 0; i < n.h; ++i) {
            const float a = row.a_Th[t * n.h + i], twice = 2 * w[i];
            const float* __restrict c_P = row.c_hP.data() + i * P;
            float* __restrict out = out_P;
            for (int64_t s = 0; s < P; ++s) out[s] -= twice / (1.0f + power<large>(a, c_P[s]));
        }
        std::copy(out_P, out_P + n.S, scores + t * n.S);
    }
}

// Into grad_a (T, h), and added to grad_c (h, P) and grad_w (h); d tanh = 1 - tanh² = 4·r·(1 - r), where 1 - r is
// taken as e·r: a reciprocal that is off by its last bit leaves something of 1 - r where nothing should be.
template <bool large>
void gradients_of_row(const Row& row, const float* w, const float* grad, float* g_P, float* grad_a,
                      float* grad_c_hP, float* grad_w, const Sizes& n) {
    const int64_t P = n.P();
    for (int64_t t = 0; t < n.T; ++t) {
        std::copy(grad + t * n.S, grad + (t + 1) * n.S, g_P);  // beyond S it stays zero
        for (int64_t i = 0; i < n.h; ++i) {
            const float a = row.a_Th[t * n.h + i];
            const float* __restrict c_P = row.c_hP.data() + i * P;
            const float* __restrict g = g_P;
            float* __restrict gc_P = grad_c_hP + i * P;
            float of_a = 0, of_w = 0;
            for (int64_t s = 0; s < P; ++s) {
                const float e = power<large>(a, c_P[s]), r = 1.0f / (1.0f + e);
                const float of_r = g[s] * r, slope = of_r * (e * r);
                of_a += slope;
                of_w += g[s] - 2 * of_r;
                gc_P[s] += slope;
            }
            grad_a[t * n.h + i] = 4 * w[i] * of_a;
            grad_w[i] += of_w;
        }
    }
}

// `work(first, step)` on as many threads as PyTorch would use: rows first, first + step, …
template <typename Work>
void share_rows(int64_t rows, int64_t threads, const Work& work) {
    threads = std::max<int64_t>(1, std::min(threads, rows));
    std::vector<std::thread> others;
    for (int64_t i = 1; i < threads; ++i) others.emplace_back(work, i, threads);
    work(0, threads);
    for (auto& other : others) other.join();
}

}  // namespace

extern "C" void additive_forward(const float* a, const float* c, const float* w, float* scores, int64_t R,
                                 int64_t T, int64_t S, int64_t h, int64_t threads) {
    const Sizes n{R, T, S, h};
    share_rows(R, threads, [=](int64_t first, int64_t step) {
        Row row(n);
        std::vector<float> out_P(n.P());
        for (int64_t r = first; r < R; r += step) {
            row.take(a + r * T * h, c + r * S * h, n);
            auto* work = row.large ? scores_of_row<true> : scores_of_row<false>;
            work(row, w, scores + r * T * S, out_P.data(), n);
        }
    });
}

// grad_w has a row of h for every thread.
extern "C" void additive_backward(const float* grad, const float* a, const float* c, const float* w,
                                  float* grad_a, float* grad_c, float* grad_w, int64_t R, int64_t T, int64_t S,
                                  int64_t h, int64_t threads) {
    const Sizes n{R, T, S, h};
    share_rows(R, threads, [=](int64_t first, int64_t step) {
        Row row(n);
        std::vector<float> g_P(n.P()), grad_c_hP(h * n.P());
        for (int64_t r = first; r < R; r += step) {
            row.take(a + r * T * h, c + r * S * h, n);
            std::fill(grad_c_hP.begin(), grad_c_hP.end(), 0.0f);
            auto* work = row.large ? gradients_of_row<true> : gradients_of_row<false>;
            work(row, w, grad + r * T * S, g_P.data(), grad_a + r * T * h, grad_c_hP.data(), grad_w + first * h, n);
            for (int64_t s = 0; s < S; ++s)
                for (int64_t i = 0; i < h; ++i)
                    grad_c[(r * S + s) * h + i] = 4 * w[i] * grad_c_hP[i * n.P() + s];
        }
    });
}
