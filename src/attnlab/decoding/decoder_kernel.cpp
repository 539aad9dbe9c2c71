// One token further: a whole pre-norm decoder with learned positions and causal softmax attention, in fp32.
//
// Every sum of a row is taken in one and the same order, whatever rows stand beside it: a text is the same to the
// last bit in any batch. Products go over panels of LANES outputs, (in, LANES) each, so that what is read lies
// together; an output is one chain of fused multiply-adds over the inputs, in their order.
//
// Shapes: B rows, D width, F width of the MLP, H heads of d, C places in the cache, V vocabulary. Keys are
// (B, layers, H, d, C) and values (B, layers, H, C, d).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

constexpr int64_t LANES = 16;
typedef float Lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4)));

int64_t panels(int64_t outputs) { return (outputs + LANES - 1) / LANES; }

// R rows by P panels at once: as many chains as the processor needs to be busy, and none longer or shorter.
template <int R, int P>
inline void tile(const float* x, int64_t stride, const float* w, const float* bias, int64_t in, float* y,
                 int64_t outputs, int64_t left) {
    Lanes sums[R][P];
    for (int p = 0; p < P; ++p) {
        Lanes begin = {};
        if (bias) begin = *reinterpret_cast<const Lanes*>(bias + p * LANES);
        for (int r = 0; r < R; ++r) sums[r][p] = begin;
    }
    for (int64_t i = 0; i < in; ++i)
        for (int p = 0; p < P; ++p) {
            const Lanes column = *reinterpret_cast<const Lanes*>(w + (p * in + i) * LANES);
            for (int r = 0; r < R; ++r) sums[r][p] += x[r * stride + i] * column;
        }
    for (int r = 0; r < R; ++r)
        for (int p = 0; p < P; ++p)
            for (int64_t o = 0; o < std::min(LANES, left - p * LANES); ++o)
                y[r * outputs + p * LANES + o] = sums[r][p][o];
}

// y (B, outputs) = x (B, in) · w + bias. The bias is filled up to whole panels; it may be none.
void product(const float* x, int64_t stride, const float* w, const float* bias, int64_t B, int64_t in,
             int64_t outputs, float* y) {
    for (int64_t p = 0; p < panels(outputs); ) {
        const bool four = p + 4 <= panels(outputs);
        const float* panel = w + p * in * LANES;
        const float* first = bias ? bias + p * LANES : nullptr;
        const int64_t left = outputs - p * LANES;
        float* to = y + p * LANES;
        int64_t b = 0;
        if (four) {
            for (; b + 4 <= B; b += 4) tile<4, 4>(x + b * stride, stride, panel, first, in, to + b * outputs, outputs, left);
            for (; b < B; ++b) tile<1, 4>(x + b * stride, stride, panel, first, in, to + b * outputs, outputs, left);
            p += 4;
        } else {
            for (; b + 8 <= B; b += 8) tile<8, 1>(x + b * stride, stride, panel, first, in, to + b * outputs, outputs, left);
            for (; b < B; ++b) tile<1, 1>(x + b * stride, stride, panel, first, in, to + b * outputs, outputs, left);
            p += 1;
        }
    }
}

void norm(const float* x, const float* scale, const float* shift, float eps, int64_t D, float* y) {
    float mean = 0, square = 0;
    for (int64_t i = 0; i < D; ++i) mean += x[i];
    mean /= D;
    for (int64_t i = 0; i < D; ++i) square += (x[i] - mean) * (x[i] - mean);
    const float factor = 1 / std::sqrt(square / D + eps);
    for (int64_t i = 0; i < D; ++i) y[i] = (x[i] - mean) * factor * scale[i] + shift[i];
}

// One query against the `seen` keys of its head.
void attend(const float* q, const float* keys_dC, const float* values_Cd, int64_t seen, int64_t d, int64_t C,
            float scale, float* weights, float* out) {
    std::fill(weights, weights + seen, 0.0f);
    for (int64_t i = 0; i < d; ++i) {
        const float x = q[i] * scale;
        for (int64_t s = 0; s < seen; ++s) weights[s] += x * keys_dC[i * C + s];
    }
    float most = weights[0], total = 0;
    for (int64_t s = 1; s < seen; ++s) most = std::max(most, weights[s]);
    for (int64_t s = 0; s < seen; ++s) weights[s] = std::exp(weights[s] - most);
    for (int64_t s = 0; s < seen; ++s) total += weights[s];
    std::fill(out, out + d, 0.0f);
    for (int64_t s = 0; s < seen; ++s)
        for (int64_t i = 0; i < d; ++i) out[i] += weights[s] * values_Cd[s * d + i];
    for (int64_t i = 0; i < d; ++i) out[i] /= total;
}

}  // namespace

extern "C" {

struct Sizes {
    int64_t layers, heads, width, inner, vocabulary, capacity;
    float eps, scale;
};

int64_t lanes() { return LANES; }

// Read one token of every row at place `at`; what the last norm gives is written to hidden (B, D). `weights`
// holds, layer after layer: norm (scale, shift), q k v, merge, norm, up, down, each product as its panels and its
// bias filled up to whole panels; at the end the last norm.
void decoder_step(const float* weights, const Sizes* sizes, const float* embedding, const float* positions,
                  const int64_t* tokens, int64_t token_stride, int64_t B, int64_t at, float* keys, float* values,
                  float* hidden) {
    const Sizes& n = *sizes;
    const int64_t D = n.width, F = n.inner, H = n.heads, d = D / H, C = n.capacity;
    std::vector<float> x(B * D), normed(B * D), qkv(B * 3 * D), mixed(B * D), added(B * D), inner(B * F), w(at + 1);
    const float* next = weights;
    auto take = [&next](int64_t count) { const float* here = next; next += count; return here; };
    for (int64_t b = 0; b < B; ++b)
        for (int64_t i = 0; i < D; ++i)
            x[b * D + i] = embedding[tokens[b * token_stride] * D + i] + positions[at * D + i];
    auto into = [&](const float* from, int64_t in, int64_t outputs, float* to) {
        const float* matrix = take(panels(outputs) * in * LANES);
        const float* bias = take(panels(outputs) * LANES);
        product(from, in, matrix, bias, B, in, outputs, to);
    };
    auto normalise = [&](float* to) {
        const float* scale = take(D);
        const float* shift = take(D);
        for (int64_t b = 0; b < B; ++b) norm(&x[b * D], scale, shift, n.eps, D, to + b * D);
    };
    for (int64_t layer = 0; layer < n.layers; ++layer) {
        normalise(normed.data());
        into(normed.data(), D, 3 * D, qkv.data());
        for (int64_t b = 0; b < B; ++b)
            for (int64_t h = 0; h < H; ++h) {
                const float* q = &qkv[b * 3 * D + h * d];
                float* k_dC = keys + ((b * n.layers + layer) * H + h) * d * C;
                float* v_Cd = values + ((b * n.layers + layer) * H + h) * d * C;
                for (int64_t i = 0; i < d; ++i) {
                    k_dC[i * C + at] = q[D + i];
                    v_Cd[at * d + i] = q[2 * D + i];
                }
                attend(q, k_dC, v_Cd, at + 1, d, C, n.scale, w.data(), &mixed[b * D + h * d]);
            }
        into(mixed.data(), D, D, added.data());
        for (int64_t i = 0; i < B * D; ++i) x[i] += added[i];
        if (!F) continue;
        normalise(normed.data());
        into(normed.data(), D, F, inner.data());
        for (float& u : inner) {  // GELU by tanh, as x·σ(2z)
            const float z = 0.7978845608028654f * (u + 0.044715f * u * u * u);
            u = u / (1 + std::exp(-2 * z));
        }
        into(inner.data(), F, D, added.data());
        for (int64_t i = 0; i < B * D; ++i) x[i] += added[i];
    }
    normalise(hidden);
}

// logits (B, V), from hidden (B, D) whose rows are `stride` apart.
void decoder_head(const float* panels_of_head, const Sizes* sizes, const float* hidden, int64_t stride, int64_t B,
                  float* logits) {
    product(hidden, stride, panels_of_head, nullptr, B, sizes->width, sizes->vocabulary, logits);
}
}
