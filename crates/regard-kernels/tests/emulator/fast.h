// The functions of text/running.cu as the emulator has them.

inline float exp2_fast(float x) { return exp2f(x); }
inline u32 pack(float low, float high) {
    unsigned short a, b;
    emulator::convert(a, low), emulator::convert(b, high);
    return a | (u32)b << 16;
}
