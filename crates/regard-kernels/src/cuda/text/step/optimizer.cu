// One step of Adam, AdamW and SGD over one parameter, by the formulas of step/reference.rs.

extern "C" __global__ void adam(T *value, const T *gradient, T *m, T *v, i64 count, double scale, double rate, double beta1, double beta2, double eps,
                                double decay, i64 decoupled, double correction1, double correction2) {
    EACH(n, count) {
        T x = value[n], g = gradient[n] * (T)scale;
        if (decoupled) x *= (T)(1 - rate * decay);
        else g += (T)decay * x;
        T first = m[n] + (T)(1 - beta1) * (g - m[n]), second = (T)beta2 * v[n] + (T)(1 - beta2) * g * g;
        m[n] = first, v[n] = second;
        value[n] = x - (T)(rate / correction1) * (first / (root(second) / (T)correction2 + (T)eps));
    }
}

extern "C" __global__ void sgd(T *value, const T *gradient, T *kept, i64 count, double scale, double rate, double momentum, double decay,
                               i64 nesterov) {
    EACH(n, count) {
        T x = value[n], g = gradient[n] * (T)scale + (T)decay * x, along = kept ? (T)momentum * kept[n] + g : g;
        if (kept) kept[n] = along;
        value[n] = x - (T)rate * (nesterov ? g + (T)momentum * along : along);
    }
}
