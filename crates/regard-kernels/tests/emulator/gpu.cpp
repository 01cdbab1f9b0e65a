// A GPU on a CPU: NVIDIA's driver and its compiler in one library. The compiler gives a kernel's text to the C++ compiler
// behind device.h; the driver's memory is the host's, and a launch runs the blocks one after another, as fibers. What is
// behind REGARD_EMULATOR is the folder of this file, behind REGARD_EMULATED one to write to.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <functional>
#include <string>
#include <unistd.h>

typedef int R;
enum { FINE = 0, INVALID = 1, NO_COMPILATION = 6 };

struct Program {
    std::string text, code, log;
};

// What a command prints.
static std::string said(const std::string &command) {
    std::string all;
    FILE *from = popen(command.c_str(), "r");
    char part[4096];
    for (size_t n; from && (n = fread(part, 1, sizeof part, from)) > 0;) all.append(part, n);
    if (from) pclose(from);
    return all;
}

// The line of a text that says what numbers are stored in, as the attention's texts have it.
static std::string stored(const std::string &text) {
    size_t at = text.find("#define STORED ");
    return at == std::string::npos ? "#define STORED SAME\n" : text.substr(at, text.find('\n', at) + 1 - at);
}

// A function for each kernel of a text without macros, which takes what the driver is given for it.
static std::string launchers(const std::string &text) {
    const std::string mark = "__global__ void ", bounds = "__launch_bounds__(";
    std::string all;
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
        size_t begin = at + mark.size();
        if (text.compare(begin, bounds.size(), bounds) == 0) {
            int deep = 1;
            for (begin += bounds.size(); deep > 0; begin++) deep += text[begin] == '(' ? 1 : text[begin] == ')' ? -1 : 0;
            begin++;
        }
        size_t open = text.find('(', begin), close = text.find(')', open);
        std::string name = text.substr(begin, open - begin), arguments;
        int n = 0;
        for (size_t from = open + 1; from < close; n++) {
            size_t to = std::min(text.find(',', from), close), last = text.find_last_of(" *", to - 1);
            arguments += (n ? ", *(" : "*(") + text.substr(from, last + 1 - from) + "*)a[" + std::to_string(n) + "]";
            from = to + 1;
        }
        all += "extern \"C\" void launch_" + name + "(const unsigned *grid, unsigned threads, void **a) {\n    emulator::launch({grid[0], grid[1], grid[2]}, threads, [=] { " +
               name + "(" + arguments + "); });\n}\n";
    }
    return all;
}

extern "C" {

R nvrtcVersion(int *major, int *minor) { return *major = 13, *minor = 0, FINE; }
R nvrtcCreateProgram(void **program, const char *text, const char *, int, const char *const *, const char *const *) {
    return *program = new Program{text, "", ""}, FINE;
}
R nvrtcDestroyProgram(void **program) { return delete (Program *)*program, FINE; }
R nvrtcCompileProgram(void *program, int, const char *const *) {
    Program &p = *(Program *)program;
    const char *here = getenv("REGARD_EMULATOR"), *folder = getenv("REGARD_EMULATED");
    if (!here || !folder) return NO_COMPILATION;
    std::string name = std::string(folder) + "/" + std::to_string(std::hash<std::string>()(p.text)), own = name + "." + std::to_string(getpid());
    p.code = name + ".so";
    if (access(p.code.c_str(), R_OK) == 0) return FINE;
    std::ofstream(own + ".cu") << p.text;
    std::string kernels = launchers(said("c++ -E -P -x c++ " + own + ".cu"));
    std::ofstream(own + ".cpp") << "#define SAME 0\n#define BF16 1\n#define F16 2\n" << stored(p.text) << "#include \"device.h\"\n"
                                << "#undef STORED\n#undef F16\n#undef BF16\n#undef SAME\n" << p.text << kernels;
    std::string command = "c++ -O1 -std=c++17 -w -fPIC -shared -I " + std::string(here) + " -o " + own + ".so " + own + ".cpp 2> " + own + ".log";
    if (system(command.c_str())) {
        std::ifstream log(own + ".log");
        p.log.assign(std::istreambuf_iterator<char>(log), {});
        return NO_COMPILATION;
    }
    return rename((own + ".so").c_str(), p.code.c_str()) ? NO_COMPILATION : FINE;
}
R nvrtcGetProgramLogSize(void *program, size_t *size) { return *size = ((Program *)program)->log.size() + 1, FINE; }
R nvrtcGetProgramLog(void *program, char *to) { return strcpy(to, ((Program *)program)->log.c_str()), FINE; }
R nvrtcGetCUBINSize(void *program, size_t *size) { return *size = ((Program *)program)->code.size() + 1, FINE; }
R nvrtcGetCUBIN(void *program, char *to) { return strcpy(to, ((Program *)program)->code.c_str()), FINE; }
const char *nvrtcGetErrorString(R) { return "the C++ compiler refused the text"; }

R cuInit(unsigned) { return FINE; }
R cuDriverGetVersion(int *version) { return *version = 13000, FINE; }
R cuDeviceGetCount(int *count) { return *count = 1, FINE; }
R cuDeviceGet(int *device, int ordinal) { return *device = ordinal, FINE; }
R cuDeviceGetName(char *name, int length, int) { return snprintf(name, length, "an emulated GPU"), FINE; }
R cuDeviceTotalMem_v2(size_t *bytes, int) { return *bytes = 1ull << 32, FINE; }
// Compute capability 8.0, and too little shared memory for tiles, whose instructions device.h does not know: attention goes
// to the kernels that need none.
R cuDeviceGetAttribute(int *value, int which, int) { return *value = which == 75 ? 8 : which == 76 ? 0 : which == 97 ? 1024 : 108, FINE; }
R cuDevicePrimaryCtxRetain(void **context, int) { return *context = (void *)1, FINE; }
R cuDevicePrimaryCtxRelease_v2(int) { return FINE; }
static thread_local void *current;
R cuCtxGetCurrent(void **context) { return *context = current, FINE; }
R cuCtxSetCurrent(void *context) { return current = context, FINE; }
R cuStreamCreate(void **stream, unsigned) { return *stream = (void *)2, FINE; }
R cuStreamDestroy_v2(void *) { return FINE; }
R cuStreamSynchronize(void *) { return FINE; }
R cuStreamIsCapturing(void *, int *status) { return *status = 0, FINE; }
R cuThreadExchangeStreamCaptureMode(int *) { return FINE; }
R cuDeviceGetDefaultMemPool(void **pool, int) { return *pool = (void *)3, FINE; }
R cuMemPoolSetAttribute(void *, int, void *) { return FINE; }
R cuPointerGetAttribute(void *, int, uint64_t) { return INVALID; }
R cuMemAllocAsync(uint64_t *at, size_t bytes, void *) {
    // Nobody may count on what is there.
    *at = (uint64_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
    return memset((void *)*at, 0xff, bytes), FINE;
}
R cuMemFreeAsync(uint64_t at, void *) { return free((void *)at), FINE; }
R cuMemsetD8Async(uint64_t at, unsigned char value, size_t n, void *) { return memset((void *)at, value, n), FINE; }
R cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, void *) { return memcpy((void *)to, from, n), FINE; }
R cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, void *) { return memcpy(to, (void *)from, n), FINE; }
R cuModuleLoadData(void **module, const void *image) {
    *module = dlopen((const char *)image, RTLD_NOW | RTLD_LOCAL);
    if (!*module) fprintf(stderr, "the emulated GPU: %s\n", dlerror());
    return *module ? FINE : INVALID;
}
R cuModuleUnload(void *) { return FINE; }
R cuModuleGetFunction(void **function, void *module, const char *name) {
    *function = dlsym(module, ("launch_" + std::string(name)).c_str());
    return *function ? FINE : INVALID;
}
R cuFuncSetAttribute(void *, int, int) { return FINE; }
R cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned, unsigned, unsigned, void *, void **arguments, void **) {
    // Fibers are the calling thread's: one launch at a time.
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    unsigned grid[3] = {x, y, z};
    pthread_mutex_lock(&turn);
    ((void (*)(const unsigned *, unsigned, void **))function)(grid, threads, arguments);
    return pthread_mutex_unlock(&turn), FINE;
}
R cuGetErrorString(R, const char **text) { return *text = "the emulated GPU refused", FINE; }
R cuGetErrorName(R, const char **text) { return *text = "EMULATED", FINE; }
}
