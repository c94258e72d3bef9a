/* What the fuzz targets ask of AddressSanitizer; ASAN_OPTIONS in the environment goes before it. */

__attribute__((visibility("default"))) const char *__asan_default_options(void);

/* What is freed stays out of use for a while, 256 MiB of it unless told otherwise: then every input
 * runs in memory that no cache holds, and takes half as long again. An input frees less than 100
 * KB: 8 MiB still tell of uses after many inputs. */
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=8";
}
