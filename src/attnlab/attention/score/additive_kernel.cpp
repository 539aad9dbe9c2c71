// The additive score, w·tanh(a + c) for every query and key, and its gradients. Nothing per pair but the score is
// ever written down.
//
// Shapes, all contiguous: a (R, T, h), c (R, S, h), w (h), scores (R, T, S), for R rows of batch × heads.

#include "additive_rows.h"

extern "C" void additive_forward(const float* a, const float* c, const float* w, float* scores, int64_t R,
                                 int64_t T, int64_t S, int64_t h, int64_t threads) {
    const Sizes n(R, 1, T, S, h, 0);
    share_rows(n, threads, [&](int64_t first, int64_t step) {
        Row row(n, w, false);
        Floats out_P(n.P);
        for (int64_t r = first; r < R; r += step) {
            row.take(r, a, c);
            for (int64_t t = 0; t < T; ++t) {
                row.scores(t, 0, n.P, out_P.data());
                std::copy(out_P.data(), out_P.data() + S, scores + (r * T + t) * S);
            }
        }
    });
}

// grad_w has a row of h for every thread.
extern "C" void additive_backward(const float* grad, const float* a, const float* c, const float* w,
                                  float* grad_a, float* grad_c, float* grad_w, int64_t R, int64_t T, int64_t S,
                                  int64_t h, int64_t threads) {
    const Sizes n(R, 1, T, S, h, 0);
    share_rows(n, threads, [&](int64_t first, int64_t step) {
        Row row(n, w, true);
        for (int64_t r = first; r < R; r += step) {
            row.take(r, a, c);
            for (int64_t t = 0; t < T; ++t) row.gradients(t, 0, S, grad + (r * T + t) * S, grad_a + (r * T + t) * h);
            row.give(r, grad_c);
        }
        std::copy(row.grad_w_i.begin(), row.grad_w_i.begin() + h, grad_w + first * h);
    });
}
