// Numbers that are worked on side by side, and the memory they lie in, for the compiled kernels.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

namespace {

#if defined(__AVX512F__)
constexpr int LANES = 16;
#elif defined(__AVX__)
constexpr int LANES = 8;
#else
constexpr int LANES = 4;
#endif

typedef float Vector __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t Whole __attribute__((vector_size(4 * LANES)));

inline Vector& at(float* place) { return *reinterpret_cast<Vector*>(place); }
inline const Vector& at(const float* place) { return *reinterpret_cast<const Vector*>(place); }

// The compiler may neither load a value again nor reckon with where it comes from: x + y - y is not x.
inline void keep(Vector& x) {
#if defined(__x86_64__)
    asm("" : "+v"(x));
#elif defined(__aarch64__)
    asm("" : "+w"(x));
#else
    asm("" : "+m"(x));
#endif
}

template <typename To, typename From>
inline To bits_of(From x) {
    To same;
    std::memcpy(&same, &x, sizeof same);
    return same;
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

// e^x to within two units of the last place for x up to 88, and 0 below -87.
inline Vector power_of_e(Vector x) {
    const Vector lowest = Vector{} - 87.0f;
    const auto gone = x < lowest;
    x = gone ? lowest : x;
    const Vector magic = Vector{} + 12582912.0f;  // with 1.5·2^23 added, a number's whole part is its last bits
    Vector shifted = x * 1.44269504f + magic;
    keep(shifted);
    const Vector n = shifted - magic;
    Vector r = x - n * 0.693359375f;  // x - n·ln 2, with ln 2 in two parts, of which the first product is exact
    keep(r);
    r += n * 2.12194440e-4f;
    Vector p = Vector{} + 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    const Whole power = (bits_of<Whole>(shifted) << 23) + (127 << 23);  // 2^n
    return gone ? Vector{} : p * bits_of<Vector>(power);
}

}  // namespace
