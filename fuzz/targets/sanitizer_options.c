/* What the fuzz targets ask of AddressSanitizer; ASAN_OPTIONS in the environment goes before it. */

__attribute__((visibility("default"))) const char *__asan_default_options(void);

/* What is freed stays out of use for a while, 256 MiB of it by default: then every input
 * runs in memory that no cache holds, and takes half as long again. An input frees less than 100
 * KB: 8 MiB still tell of uses after many inputs.
 *
 * Where the thread-local memory of a library that was loaded lies, the runtimes of gcc 12 and clang
 * 14 read from in front of it, as glibc 2.19 had it; since then there is the header of their own
 * allocator, and the search for leaks reads wherever that points to, and crashes. It is not asked
 * (CMakePresets.json says the same to tests). */
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=8:intercept_tls_get_addr=0";
}
