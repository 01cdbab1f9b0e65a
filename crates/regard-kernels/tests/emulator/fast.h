// The functions of text/running.cu as the emulator has them.

inline float exp2_fast(float x) { return exp2f(x); }
inline u32 pack(float low, float high) { return narrow(low) | (u32)narrow(high) << 16; }
