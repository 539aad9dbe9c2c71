// Attention by the softmax of the additive score, and its gradients: one query's scores at a time, and none of them
// ever written down.
//
// Shapes, all contiguous: a (B, T, H, h), c (B, S, H, h), w (h), v (B, S, H, d), seen (T, S), real (B, S). Inside a
// row, keys lie beside one another, (P) and (d, P), and what a key carries, (P, D), filled up to multiples of LANES.

#include "additive_rows.h"

namespace {

// Which keys a query sees: seen (T, S), the same for all rows, of those that are real (B, S).
struct Sight {
    const Sizes& n;
    const uint8_t *seen, *real;
    std::vector<int64_t> first_T, last_T;

    Sight(const Sizes& n_, const uint8_t* seen_, const uint8_t* real_)
        : n(n_), seen(seen_), real(real_), first_T(n.T), last_T(n.T) {
        for (int64_t t = 0; t < n.T; ++t) {
            const uint8_t* row = seen + t * n.S;
            int64_t first = 0, last = n.S;
            while (last > 0 && !row[last - 1]) --last;
            while (first < last && !row[first]) ++first;
            first_T[t] = first / LANES * LANES;
            last_T[t] = last;
        }
    }
};

// Weights that are dropped, a function of the seed, the row and the pair: the same forward and backward.
struct Dropout {
    uint64_t seed;
    uint32_t share;  // of 2^16
    float grow;

    Dropout(int64_t seed_, int64_t share_) : seed(seed_), share(share_), grow(65536.0f / (65536 - share_)) {}

    uint32_t of_row(int64_t row) const {
        uint64_t x = seed + 0x9E3779B97F4A7C15u * static_cast<uint64_t>(row + 1);
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
        return static_cast<uint32_t>(x ^ (x >> 31));
    }

    // 0 or what a weight is multiplied with, for each key of one query.
    void factors(uint32_t of_row, int64_t t, int64_t first, int64_t last, float* out_P) const {
        uint32_t begin = of_row + static_cast<uint32_t>(t) * 0x9E3779B1u;
        begin ^= begin >> 15;
        const Vector kept = Vector{} + grow;
        for (int64_t s = first; s < last; s += LANES) {
            Hash x;
            for (int32_t m = 0; m < LANES; ++m) x[m] = static_cast<uint32_t>(s) + m;
            x = begin + x * 0x85EBCA77u;
            x = (x ^ (x >> 16)) * 0x7FEB352Du;
            x = (x ^ (x >> 15)) * 0x846CA68Bu;
            at(out_P + s) = (x >> 16) >= share ? kept : Vector{};
        }
    }
};

// Attention of one row, a query at a time.
struct Attending {
    const Sizes& n;
    const Sight& sight;
    const Dropout& dropout;
    Row pairs;
    Floats v_SD, v_dP;  // forward the one, backward the other
    Floats grad_v_SD, weights_P, factors_P, grad_P;
    std::vector<uint8_t> seen_P, real_P;
    int64_t row = 0, end = 0;
    uint32_t of_row = 0;

    Attending(const Sizes& n_, const Sight& sight_, const Dropout& dropout_, const float* w, bool backward)
        : n(n_), sight(sight_), dropout(dropout_), pairs(n_, w, backward), v_SD(backward ? 0 : n.P * n.D),
          v_dP(backward ? n.d * n.P : 0), grad_v_SD(backward ? n.P * n.D : 0), weights_P(n.P), factors_P(n.P, 1.0f),
          grad_P(n.P), seen_P(n.P), real_P(n.P) {}

    void take(int64_t row_, const float* a, const float* c, const float* v) {
        row = row_, of_row = dropout.of_row(row);
        std::memcpy(real_P.data(), sight.real + row / n.H * n.S, n.S);
        for (end = n.S; end > 0 && !real_P[end - 1];) --end;
        pairs.take(row, a, c);
        v += n.begin(row, n.S, n.d);
        for (int64_t s = 0; s < n.S; ++s)
            for (int64_t j = 0; j < n.d; ++j) {
                const float x = v[s * n.H * n.d + j];
                if (v_dP.empty()) v_SD[s * n.D + j] = x;
                else v_dP[j * n.P + s] = x;
            }
        std::fill(grad_v_SD.begin(), grad_v_SD.end(), 0.0f);
    }

    int64_t first(int64_t t) const { return sight.first_T[t]; }
    int64_t last(int64_t t) const { return filled(std::max(first(t), std::min(sight.last_T[t], end))); }

    // One query's weights, and what dropout multiplies them with. A lane at a time, the last one filled up: what is
    // left of a loop that does not come out even costs more than the rest.
    void weigh(int64_t t) {
        const int64_t begin = first(t), beyond = last(t);
        if (begin < beyond) std::memcpy(&seen_P[begin], sight.seen + t * n.S + begin, std::min(beyond, n.S) - begin);
        pairs.scores(t, begin, beyond, weights_P.data());
        float best = LOWEST, sum = 0;
        for (int64_t s = begin; s < beyond; s += LANES) {
            const uint8_t *seen = &seen_P[s], *real = &real_P[s];
            float* const x = &weights_P[s];
            for (int64_t m = 0; m < LANES; ++m) x[m] = seen[m] & real[m] ? x[m] : LOWEST;
            for (int64_t m = 0; m < LANES; ++m) best = std::max(best, x[m]);
        }
        for (int64_t s = begin; s < beyond; s += LANES) {
            const uint8_t *seen = &seen_P[s], *real = &real_P[s];
            float* const x = &weights_P[s];
            at(x) = power_or_nan(at(x) - best);
            for (int64_t m = 0; m < LANES; ++m) x[m] = seen[m] & real[m] ? x[m] : 0.0f;
            for (int64_t m = 0; m < LANES; ++m) sum += x[m];
        }
        const float scale = 1.0f / (sum + 1e-30f);  // where anything is seen the sum is 1 at least
        for (int64_t s = begin; s < beyond; s += LANES) at(&weights_P[s]) *= scale;
        if (dropout.share) dropout.factors(of_row, t, begin, beyond, factors_P.data());
    }

    void forward(int64_t t, float* out_d) {
        weigh(t);
        for (int64_t j = 0; j < n.D; j += LANES) {
            Vector sum[4] = {};
            for (int64_t s = first(t); s < last(t); s += 4)
                for (int64_t m = 0; m < 4; ++m)
                    sum[m] += weights_P[s + m] * factors_P[s + m] * at(&v_SD[(s + m) * n.D + j]);
            const Vector mixed = (sum[0] + sum[1]) + (sum[2] + sum[3]);
            for (int64_t m = j; m < std::min(j + LANES, n.d); ++m) out_d[m] = mixed[m - j];
        }
    }

    void backward(int64_t t, const float* grad_d, float* grad_a) {
        weigh(t);
        Floats& g_P = grad_P;
        float along = 0;
        for (int64_t s = first(t); s < last(t); s += LANES) {
            Vector sum{};
            for (int64_t j = 0; j < n.d; ++j) sum += grad_d[j] * at(&v_dP[j * n.P + s]);
            at(&g_P[s]) = sum * at(&factors_P[s]);
            for (int64_t m = s; m < s + LANES; ++m) along += g_P[m] * weights_P[m];
        }
        for (int64_t j = 0; j < n.D; j += LANES) {
            Vector of_j{};
            for (int64_t m = j; m < std::min(j + LANES, n.d); ++m) of_j[m - j] = grad_d[m];
            for (int64_t s = first(t); s < last(t); ++s)
                at(&grad_v_SD[s * n.D + j]) += weights_P[s] * factors_P[s] * of_j;
        }
        for (int64_t s = first(t); s < last(t); ++s) g_P[s] = weights_P[s] * (g_P[s] - along);
        pairs.gradients(t, first(t), std::min(last(t), n.S), g_P.data(), grad_a);
    }

    void give(float* grad_c, float* grad_v) const {
        pairs.give(row, grad_c);
        grad_v += n.begin(row, n.S, n.d);
        for (int64_t s = 0; s < n.S; ++s)
            for (int64_t j = 0; j < n.d; ++j) grad_v[s * n.H * n.d + j] = grad_v_SD[s * n.D + j];
    }
};

}  // namespace

extern "C" void attend_forward(const float* a, const float* c, const float* w, const float* v, const uint8_t* seen,
                               const uint8_t* real, float* mixed, int64_t B, int64_t H, int64_t T, int64_t S,
                               int64_t h, int64_t d, int64_t seed, int64_t share, int64_t threads) {
    const Sizes n(B, H, T, S, h, d);
    const Sight sight(n, seen, real);
    const Dropout dropout(seed, share);
    share_rows(n, threads, [&](int64_t first, int64_t step) {
        Attending row(n, sight, dropout, w, false);
        for (int64_t r = first; r < B * H; r += step) {
            row.take(r, a, c, v);
            for (int64_t t = 0; t < T; ++t) row.forward(t, mixed + n.begin(r, T, d) + t * H * d);
        }
    });
}

// grad_w has a row of h for every thread.
extern "C" void attend_backward(const float* grad, const float* a, const float* c, const float* w, const float* v,
                                const uint8_t* seen, const uint8_t* real, float* grad_a, float* grad_c, float* grad_w,
                                float* grad_v, int64_t B, int64_t H, int64_t T, int64_t S, int64_t h, int64_t d,
                                int64_t seed, int64_t share, int64_t threads) {
    const Sizes n(B, H, T, S, h, d);
    const Sight sight(n, seen, real);
    const Dropout dropout(seed, share);
    share_rows(n, threads, [&](int64_t first, int64_t step) {
        Attending row(n, sight, dropout, w, true);
        for (int64_t r = first; r < B * H; r += step) {
            row.take(r, a, c, v);
            for (int64_t t = 0; t < T; ++t)
                row.backward(t, grad + n.begin(r, T, d) + t * H * d, grad_a + n.begin(r, T, h) + t * H * h);
            row.give(grad_c, grad_v);
        }
        std::copy(row.pairs.grad_w_i.begin(), row.pairs.grad_w_i.begin() + h, grad_w + first * h);
    });
}
