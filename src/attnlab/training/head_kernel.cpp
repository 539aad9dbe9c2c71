// The losses of a head and their gradients, without a logit leaving the cache.
//
// Every thread has some of the words. A strip of tokens at a time: the logits of its words, their exponentials e, Σe
// and Σe·w, while a tile of words is at hand; then the threads meet, Σe over all words being known only now; then what
// the strip adds to the gradients of its words. All three products are made by one routine that keeps a block of its
// result in registers.
//
// Shapes: N tokens, n of a strip (STRIP), V words, v of a tile (TILE), D width. hidden (N, D) and weight (V, D) are
// contiguous, D a multiple of LANES. In a strip, tokens lie beside one another: (D, n) and (V, n).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "threads.h"
#include "vectors.h"

namespace {

constexpr int ROWS = 4, COLUMNS = LANES == 8 ? 2 : 4;  // of a block in registers; columns are vectors
constexpr int64_t STRIP = 64, TILE = 96;
constexpr float LOWEST = -3e38f;
constexpr float SAFE = 60.0f;  // the largest logit whose exponential, summed over any vocabulary, is finite
enum { DONE, REFUSED, NO_MEMORY };  // refused: something is no number, or no word

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

struct Sizes {
    int64_t N, V, D, threads;
    int64_t strips() const { return (N + STRIP - 1) / STRIP; }
    int64_t tiles() const { return (V + TILE - 1) / TILE; }
};

// What a thread found of its words for one strip, for the others to read.
struct Found {
    Floats shift_n, total_n, summed_Dn;

    void begin(int64_t D) {
        shift_n.assign(STRIP, 0.0f);
        total_n.assign(STRIP, 0.0f);
        summed_Dn.assign(D * STRIP, 0.0f);
    }
};

// A thread's words, and its memory, kept from call to call: fresh memory costs as much as a product.
struct Share {
    int64_t first, end;  // words
    Floats e_Vn, last_vD, hidden_Dn, scaled_nD, shift_n, total_n;
    Found found[2];  // one for the next strip while others still read this one's
    float longest;   // the largest norm among its words
    bool numbers;    // whether all it has seen are

    void begin(const Sizes& size, int64_t me, bool keeps_all) {
        first = size.tiles() * me / size.threads * TILE;
        const int64_t tiles = size.tiles() * (me + 1) / size.threads - first / TILE;
        end = std::min(first + tiles * TILE, size.V);
        e_Vn.resize((keeps_all ? tiles : 1) * TILE * STRIP);
        last_vD.assign(TILE * size.D, 0.0f);
        hidden_Dn.resize(size.D * STRIP);
        scaled_nD.resize(size.D * STRIP);
        shift_n.resize(STRIP);
        total_n.resize(STRIP);
        for (Found& one : found) one.begin(size.D);
    }
};

// The sum of the squares of rows (rows, D): the largest, and whether it and all the others are numbers. Looked at bit
// by bit, since the compiler is told that there are none but numbers.
float largest_square(const float* rows_D, int64_t rows, int64_t D, bool& numbers) {
    float largest = 0;
    for (int64_t i = 0; i < rows; ++i) {
        Vector squares{};
        for (int64_t d = 0; d < D; d += LANES) squares += at(rows_D + i * D + d) * at(rows_D + i * D + d);
        float square = 0;
        for (int lane = 0; lane < LANES; ++lane) square += squares[lane];
        uint32_t bits;
        std::memcpy(&bits, &square, sizeof bits);
        if ((bits & 0x7f800000u) == 0x7f800000u) numbers = false;
        largest = std::max(largest, square);
    }
    return largest;
}

// One call: losses, and gradients if there is a place for them.
struct Head {
    const float *hidden_ND, *weight_VD;
    const int64_t* targets_N;
    float *losses_N, *grad_hidden_ND, *grad_weight_VD;
    Sizes size;
    Share* shares;
    Meeting& meeting;

    bool with_gradients() const { return grad_weight_VD != nullptr; }

    void work(int64_t me) {
        Share& own = shares[me];
        own.numbers = true;
        own.longest = largest_square(weight_VD + own.first * size.D, own.end - own.first, size.D, own.numbers);
        if (own.end == size.V) {  // the last tile, filled up: words of zeros, whose exponentials are left out
            const int64_t begun = (size.tiles() - 1) * TILE;
            std::copy(weight_VD + begun * size.D, weight_VD + size.V * size.D, own.last_vD.begin());
        }
        meeting.wait();
        float longest = 0;
        for (int64_t i = 0; i < size.threads; ++i) longest = std::max(longest, shares[i].longest);
        for (int64_t s = 0; s < size.strips(); ++s) strip(s, me, longest);
    }

  private:
    const float* tile(const Share& own, int64_t v) const {
        return v + TILE <= size.V ? weight_VD + v * size.D : own.last_vD.data();
    }

    void strip(int64_t s, int64_t me, float longest) {
        const int64_t D = size.D, begins = s * STRIP, tokens = std::min(STRIP, size.N - begins);
        const int64_t width = (tokens + LANES - 1) / LANES * LANES;  // of these, the last may be zeros
        const float* hidden_nD = hidden_ND + begins * D;
        Share& own = shares[me];
        Found& found = own.found[s % 2];
        found.begin(D);
        for (int64_t n = 0; n < width; ++n)
            for (int64_t d = 0; d < D; ++d) own.hidden_Dn[d * STRIP + n] = n < tokens ? hidden_nD[n * D + d] : 0.0f;

        const float bound = std::sqrt(largest_square(hidden_nD, tokens, D, own.numbers)) * std::sqrt(longest);
        std::fill(own.shift_n.begin(), own.shift_n.end(), 0.0f);
        if (bound > SAFE) {
            largest_logits(own, found, width);
            meeting.wait();
            std::fill(own.shift_n.begin(), own.shift_n.end(), LOWEST);
            for (int64_t i = 0; i < size.threads; ++i)
                for (int64_t n = 0; n < width; ++n)
                    own.shift_n[n] = std::max(own.shift_n[n], shares[i].found[s % 2].shift_n[n]);
        }
        for (int64_t v = own.first; v < own.end; v += TILE) {
            float* const e_vn = own.e_Vn.data() + (with_gradients() ? v - own.first : 0) * STRIP;
            exponentials(own, found, v, e_vn, width);
            if (with_gradients()) sum(own, found, v, e_vn, width);
        }
        meeting.wait();
        std::fill(own.total_n.begin(), own.total_n.end(), 0.0f);
        for (int64_t i = 0; i < size.threads; ++i)
            for (int64_t n = 0; n < width; ++n) own.total_n[n] += shares[i].found[s % 2].total_n[n];
        if (s % size.threads == me) tell(own, s, begins, tokens);
        if (with_gradients()) gradients_of_words(own, s, begins, tokens, width);
    }

    void logits(const Share& own, int64_t v, float* out_vn, int64_t width) const {
        const float* weight_vD = tile(own, v);
        for (int64_t i = 0; i < TILE; i += ROWS)
            product<false>(width, size.D, weight_vD + i * size.D, size.D, 1, own.hidden_Dn.data(), STRIP,
                           out_vn + i * STRIP, STRIP);
    }

    void largest_logits(Share& own, Found& found, int64_t width) const {
        std::fill(found.shift_n.begin(), found.shift_n.end(), LOWEST);
        float* const logits_vn = own.e_Vn.data();
        for (int64_t v = own.first; v < own.end; v += TILE) {
            logits(own, v, logits_vn, width);
            for (int64_t i = 0; i < std::min(TILE, size.V - v); ++i)
                for (int64_t n = 0; n < width; ++n)
                    found.shift_n[n] = std::max(found.shift_n[n], logits_vn[i * STRIP + n]);
        }
    }

    void exponentials(const Share& own, Found& found, int64_t v, float* e_vn, int64_t width) const {
        logits(own, v, e_vn, width);
        const int64_t words = std::min(TILE, size.V - v);
        for (int64_t n = 0; n < width; n += LANES) {
            const Vector shift = at(&own.shift_n[n]);
            Vector total{};
            for (int64_t i = 0; i < words; ++i)
                total += at(e_vn + i * STRIP + n) = power_of_e(at(e_vn + i * STRIP + n) - shift);
            at(&found.total_n[n]) += total;
        }
    }

    void sum(const Share& own, Found& found, int64_t v, const float* e_vn, int64_t width) const {
        for (int64_t d = 0; d < size.D; d += ROWS)
            product<true>(width, TILE, tile(own, v) + d, 1, size.D, e_vn, STRIP, &found.summed_Dn[d * STRIP], STRIP);
    }

    // Every token's loss, and its gradient: Σ share·w less the word that was right.
    void tell(const Share& own, int64_t s, int64_t begins, int64_t tokens) const {
        const int64_t D = size.D;
        for (int64_t n = 0; n < tokens; ++n) {
            const float* hidden = hidden_ND + (begins + n) * D;
            const float* right = weight_VD + targets_N[begins + n] * D;
            float logit = 0;
            for (int64_t d = 0; d < D; ++d) logit += hidden[d] * right[d];
            losses_N[begins + n] = std::log(own.total_n[n]) + own.shift_n[n] - logit;
            if (!with_gradients()) continue;
            float* grad = grad_hidden_ND + (begins + n) * D;
            for (int64_t d = 0; d < D; ++d) {
                float summed = 0;
                for (int64_t i = 0; i < size.threads; ++i) summed += shares[i].found[s % 2].summed_Dn[d * STRIP + n];
                grad[d] = summed / own.total_n[n] - right[d];
            }
        }
    }

    // Into the gradients of the thread's own words: Σ share·hidden, less the tokens for which they were right.
    void gradients_of_words(Share& own, int64_t s, int64_t begins, int64_t tokens, int64_t width) const {
        const int64_t D = size.D;
        std::fill(own.scaled_nD.begin(), own.scaled_nD.end(), 0.0f);
        for (int64_t n = 0; n < tokens; ++n)
            for (int64_t d = 0; d < D; ++d)
                own.scaled_nD[n * D + d] = hidden_ND[(begins + n) * D + d] / own.total_n[n];
        for (int64_t v = own.first; v < own.end; v += ROWS) {
            const float* e_vn = own.e_Vn.data() + (v - own.first) * STRIP;
            float* grad_vD = grad_weight_VD + v * D;
            if (s == 0)
                product<false>(D, width, e_vn, STRIP, 1, own.scaled_nD.data(), D, grad_vD, D);
            else
                product<true>(D, width, e_vn, STRIP, 1, own.scaled_nD.data(), D, grad_vD, D);
        }
        for (int64_t n = begins; n < begins + tokens; ++n) {
            const int64_t right = targets_N[n];
            if (right < own.first || right >= own.end) continue;
            for (int64_t d = 0; d < D; ++d) grad_weight_VD[right * D + d] -= hidden_ND[n * D + d];
        }
    }
};

}  // namespace

// Into losses (N) goes -log softmax(hidden·weightᵀ)[target] of every token; if they are not null, into grad_hidden
// (N, D) and grad_weight, V rows filled up to a multiple of ROWS, the gradients of the sum of the losses.
extern "C" int head_losses(const float* hidden_ND, const float* weight_VD, const int64_t* targets_N, float* losses_N,
                           float* grad_hidden_ND, float* grad_weight_VD, int64_t N, int64_t V, int64_t D,
                           int64_t threads) try {
    if (std::any_of(targets_N, targets_N + N, [V](int64_t word) { return word < 0 || word >= V; })) return REFUSED;
    Sizes size{N, V, D, threads};
    size.threads = std::max<int64_t>(1, std::min(threads, size.tiles()));
    thread_local std::vector<Share> shares;  // of whoever calls
    if (static_cast<int64_t>(shares.size()) < size.threads) shares.resize(size.threads);
    for (int64_t i = 0; i < size.threads; ++i) shares[i].begin(size, i, grad_weight_VD != nullptr);
    Meeting meeting(size.threads);
    Head head{hidden_ND, weight_VD, targets_N, losses_N, grad_hidden_ND, grad_weight_VD, size, shares.data(), meeting};
    at_once(size.threads, [&head](int64_t i) { head.work(i); });
    const bool numbers = std::all_of(shares.begin(), shares.begin() + size.threads, [](auto& s) { return s.numbers; });
    return numbers ? DONE : REFUSED;
} catch (const std::bad_alloc&) {
    return NO_MEMORY;
}
