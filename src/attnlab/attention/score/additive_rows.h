// The pairs of the additive score, w·tanh(a + c) for every query and key of one row of batch × heads, and their
// gradients: what the scores and attention by them have in common.
//
// tanh(a + c) = 1 - 2r with r = 1 / (1 + e^(2a)·e^(2c)): the exponentials are taken once per token, and a pair
// costs a product and a division. In rows where an argument is too large for that, e^(2a + 2c) is taken pair by
// pair.
//
// Shapes: a (B, T, H, h), c (B, S, H, h), w (h), contiguous. Inside a row, keys lie beside one another, (h, P), filled
// up to P, and what a token carries, (T, i) and (S, i), filled up to i: multiples of LANES, which is what is worked
// on at once.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "threads.h"
#include "vectors.h"

namespace {

constexpr float LARGEST = 20.0f;  // e^(2·20)·e^(2·20) still fits, and tanh(20) is 1 to the last bit
constexpr float BEYOND = 1e30f, LOWEST = -3e38f;  // of arguments, of which two have a finite sum; and of scores
constexpr uint32_t INFINITE = 0x7F800000, NO_NUMBER = 0x7FC00000;  // as bits
constexpr int64_t THREAD = 1 << 18;  // pairs times hidden units for which another thread pays

typedef uint32_t Hash __attribute__((vector_size(4 * LANES)));

inline int64_t filled(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

struct Sizes {
    int64_t B, H, T, S, h, d;
    int64_t P, i, D;  // S, h and d, filled up

    Sizes(int64_t B_, int64_t H_, int64_t T_, int64_t S_, int64_t h_, int64_t d_)
        : B(B_), H(H_), T(T_), S(S_), h(h_), d(d_), P(filled(S_)), i(filled(h_)), D(filled(d_)) {}

    // Where the first token of a row stands, among `tokens` of each sequence, each of `width` for every head.
    int64_t begin(int64_t row, int64_t tokens, int64_t width) const {
        return (row / H * tokens * H + row % H) * width;
    }
};

// Zero, or NaN of NaN: added to what a comparison, which reckons with numbers only, may have lost it in.
inline Vector nothing_of(Vector x) {
    Vector same = x;
    keep(same);
    same -= x;
    keep(same);
    return same;
}

// e^x, and NaN of NaN.
inline Vector power_or_nan(Vector x) { return power_of_e(x) + nothing_of(x); }

// e^(2a + 2c), from exponentials or, where one would be too large, from the arguments. e^88 is the last that fits.
template <bool large, typename A>
inline Vector power(A a, Vector c) {
    if (!large) return a * c;
    const Vector both = a + c;
    return power_or_nan((both < 80.0f ? both : Vector{} + 80.0f) + nothing_of(both));
}

// 1/x to its last bit: what the compiler makes of a division here may be off by some.
inline Vector reciprocal(Vector x) {
    Vector r = 1.0f / x;
    keep(r);
    return r + r * (1.0f - x * r);
}

// One row's pairs. What it takes of a and c is either exponentials or arguments, as the formula wants them.
struct Row {
    const Sizes& n;
    bool large = false;
    float total = 0;
    Floats w_i, a_Ti, c_Si, c_hP, grad_c_Si, grad_w_i;
    std::vector<int64_t> strange_T, strange_S;

    Row(const Sizes& n_, const float* w, bool backward)
        : n(n_), w_i(n.i), a_Ti(n.T * n.i), c_Si(n.S * n.i), c_hP(n.h * n.P), grad_c_Si(backward ? n.S * n.i : 0),
          grad_w_i(backward ? n.i : 0) {
        std::copy(w, w + n.h, w_i.begin());
        for (float x : w_i) total += x;
    }

    void take(int64_t row, const float* a, const float* c) {
        const float largest = std::max(twice(a + n.begin(row, n.T, n.h), n.T, a_Ti, strange_T),
                                       twice(c + n.begin(row, n.S, n.h), n.S, c_Si, strange_S));
        large = largest > 2 * LARGEST;
        ready(a_Ti, strange_T);
        ready(c_Si, strange_S);
        for (int64_t s = 0; s < n.S; ++s)
            for (int64_t k = 0; k < n.h; ++k) c_hP[k * n.P + s] = c_Si[s * n.i + k];
        std::fill(grad_c_Si.begin(), grad_c_Si.end(), 0.0f);
    }

    // 2x of every token, and the largest of them; tokens that hold a NaN are noted instead. By their bits, since the
    // compiler takes every number for one.
    float twice(const float* x, int64_t tokens, Floats& out_ti, std::vector<int64_t>& strange) const {
        uint32_t largest = 0;
        strange.clear();
        for (int64_t t = 0; t < tokens; ++t) {
            uint32_t most = 0;
            for (int64_t k = 0; k < n.i; ++k) {
                const float both = k < n.h ? 2 * x[t * n.H * n.h + k] : 0.0f;
                out_ti[t * n.i + k] = std::min(std::max(both, -BEYOND), BEYOND);
                most = std::max(most, bits_of<uint32_t>(both) & 0x7FFFFFFF);
            }
            if (most > INFINITE) strange.push_back(t);
            else largest = std::max(largest, most);
        }
        return bits_of<float>(std::min(largest, INFINITE - 1));
    }

    void ready(Floats& x_ti, const std::vector<int64_t>& strange) const {
        if (!large)
            for (size_t k = 0; k < x_ti.size(); k += LANES) at(&x_ti[k]) = power_or_nan(at(&x_ti[k]));
        for (int64_t t : strange) std::fill_n(&x_ti[t * n.i], n.i, bits_of<float>(NO_NUMBER));
    }

    // The scores of one query for the keys from `first` on, `last` left out; both multiples of LANES.
    void scores(int64_t t, int64_t first, int64_t last, float* out_P) const {
        large ? scores_of<true>(t, first, last, out_P) : scores_of<false>(t, first, last, out_P);
    }
    template <bool large>
    void scores_of(int64_t t, int64_t first, int64_t last, float* out_P) const {
        const float *a = &a_Ti[t * n.i], *w = w_i.data();
        for (int64_t s = first; s < last; s += LANES) {
            Vector sum{};
            for (int64_t k = 0; k < n.h; ++k) sum += w[k] / (1.0f + power<large>(a[k], at(&c_hP[k * n.P + s])));
            at(out_P + s) = total - 2.0f * sum;
        }
    }

    // From the gradients of one query's scores: those of a into grad_a (h), those of c and w added to what is there.
    // d tanh = 1 - tanh² = 4·r·(1 - r), where 1 - r is taken as e·r: a reciprocal that is off by its last bit leaves
    // something of 1 - r where nothing should be.
    void gradients(int64_t t, int64_t first, int64_t last, const float* grad, float* grad_a) {
        large ? gradients_of<true>(t, first, last, grad, grad_a) : gradients_of<false>(t, first, last, grad, grad_a);
    }
    template <bool large>
    void gradients_of(int64_t t, int64_t first, int64_t last, const float* grad, float* grad_a) {
        for (int64_t k = 0; k < n.i; k += LANES) {
            const Vector a = at(&a_Ti[t * n.i + k]);
            Vector of_a{}, of_w{};
            for (int64_t s = first; s < last; ++s) {
                const Vector e = power<large>(a, at(&c_Si[s * n.i + k])), r = reciprocal(1.0f + e);
                const Vector of_r = grad[s] * r, slope = of_r * (e * r);
                of_a += slope;
                of_w += grad[s] - 2.0f * of_r;
                at(&grad_c_Si[s * n.i + k]) += slope;
            }
            at(&grad_w_i[k]) += of_w;
            of_a *= 4.0f * at(&w_i[k]);
            for (int64_t m = k; m < std::min(k + LANES, n.h); ++m) grad_a[m] = of_a[m - k];
        }
    }

    // What the whole row has added up, where it belongs.
    void give(int64_t row, float* grad_c) const {
        grad_c += n.begin(row, n.S, n.h);
        for (int64_t s = 0; s < n.S; ++s)
            for (int64_t k = 0; k < n.h; ++k) grad_c[s * n.H * n.h + k] = 4 * w_i[k] * grad_c_Si[s * n.i + k];
    }
};

// `work(first, step)` on as many threads as PyTorch would use, where each has enough to do: rows first, first + step, …
template <typename Work>
void share_rows(const Sizes& n, int64_t threads, const Work& work) {
    const int64_t rows = n.B * n.H, worth = 1 + rows * n.T * n.S * n.h / THREAD;
    threads = std::max<int64_t>(1, std::min({threads, rows, worth}));
    at_once(threads, [&](int64_t i) { work(i, threads); });
}

}  // namespace
