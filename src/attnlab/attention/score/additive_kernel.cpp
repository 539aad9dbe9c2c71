// The pairs of the additive score, w·tanh(a + c) for every query and key, and their gradients.
//
// tanh(a + c) = 1 - 2r with r = 1 / (1 + e^(2(a + c))). Where a and c are small enough, `a` and `c` come as
// their exponentials e^(2a), e^(2c), and r costs a product and a division; where they are not ("large"), they
// come as 2a and 2c and the exponential is taken for every pair. Nothing per pair but the score is ever kept.
//
// Shapes, all rows contiguous: a (R, T, h), c (R, h, S), w (h), scores (R, T, S), for R rows of batch × heads.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

template <bool large>
inline float reciprocal(float a, float c) {
    // e^87 is the last that fits; r is zero to the last bit long before.
    return 1.0f / (1.0f + (large ? std::exp(std::min(a + c, 80.0f)) : a * c));
}

// Run `work(row)` for all rows, on as many threads as PyTorch would use.
template <typename Work>
void for_all_rows(int64_t rows, int64_t threads, const Work& work) {
    threads = std::max<int64_t>(1, std::min(threads, rows));
    std::vector<std::thread> others;
    auto some = [&](int64_t first) {
        for (int64_t row = first; row < rows; row += threads) work(row, first);
    };
    for (int64_t i = 1; i < threads; ++i) others.emplace_back(some, i);
    some(0);
    for (auto& other : others) other.join();
}

template <bool large>
void forward(const float* a, const float* c, const float* w, float* scores, int64_t R, int64_t T, int64_t S,
             int64_t h, int64_t threads) {
    float sum = 0;
    for (int64_t i = 0; i < h; ++i) sum += w[i];
    for_all_rows(R, threads, [=](int64_t row, int64_t) {
        const float* c_hS = c + row * h * S;
        for (int64_t t = 0; t < T; ++t) {
            const float* a_h = a + (row * T + t) * h;
            float* __restrict out_S = scores + (row * T + t) * S;
            std::fill(out_S, out_S + S, sum);
            for (int64_t i = 0; i < h; ++i) {
                const float a_i = a_h[i], twice = 2 * w[i];
                const float* __restrict c_S = c_hS + i * S;
                for (int64_t s = 0; s < S; ++s) out_S[s] -= twice * reciprocal<large>(a_i, c_S[s]);
            }
        }
    });
}

// grad_a and grad_c come back without their common factor 4w; grad_w as a row per thread.
template <bool large>
void backward(const float* grad, const float* a, const float* c, float* grad_a, float* grad_c, float* grad_w,
              int64_t R, int64_t T, int64_t S, int64_t h, int64_t threads) {
    for_all_rows(R, threads, [=](int64_t row, int64_t thread) {
        const float* c_hS = c + row * h * S;
        float* gw_h = grad_w + thread * h;
        for (int64_t t = 0; t < T; ++t) {
            const float* a_h = a + (row * T + t) * h;
            const float* __restrict g_S = grad + (row * T + t) * S;
            for (int64_t i = 0; i < h; ++i) {
                const float a_i = a_h[i];
                const float* __restrict c_S = c_hS + i * S;
                float* __restrict gc_S = grad_c + (row * h + i) * S;
                float of_a = 0, of_w = 0;
                for (int64_t s = 0; s < S; ++s) {
                    const float r = reciprocal<large>(a_i, c_S[s]), slope = g_S[s] * (r - r * r);
                    of_a += slope;
                    of_w += g_S[s] * (1 - 2 * r);
                    gc_S[s] += slope;
                }
                grad_a[(row * T + t) * h + i] = of_a;
                gw_h[i] += of_w;
            }
        }
    });
}

}  // namespace

extern "C" void additive_forward(const float* a, const float* c, const float* w, float* scores, int64_t R,
                                 int64_t T, int64_t S, int64_t h, int64_t large, int64_t threads) {
    (large ? forward<true> : forward<false>)(a, c, w, scores, R, T, S, h, threads);
}

extern "C" void additive_backward(const float* grad, const float* a, const float* c, float* grad_a,
                                  float* grad_c, float* grad_w, int64_t R, int64_t T, int64_t S, int64_t h,
                                  int64_t large, int64_t threads) {
    (large ? backward<true> : backward<false>)(grad, a, c, grad_a, grad_c, grad_w, R, T, S, h, threads);
}
