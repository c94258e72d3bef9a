#define _GNU_SOURCE /* dl_iterate_phdr, RTLD_DEFAULT */
#include "host_calls.h"

#include "gmd_text.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Relocations that put the address of another library's function into an entry. */
#if defined(__x86_64__)
enum { IN_CALL_TABLE = R_X86_64_JUMP_SLOT, IN_TABLE = R_X86_64_GLOB_DAT, IN_DATA = R_X86_64_64 };
#elif defined(__aarch64__)
enum {
    IN_CALL_TABLE = R_AARCH64_JUMP_SLOT,
    IN_TABLE = R_AARCH64_GLOB_DAT,
    IN_DATA = R_AARCH64_ABS64
};
#else
enum { IN_CALL_TABLE = -1, IN_TABLE = -1, IN_DATA = -1 };
#endif

enum { CALLS_MAX = 32 };

typedef struct exchange {
    const host_call *calls;
    uintptr_t real[CALLS_MAX]; /* what the program itself would call */
    size_t call_count, entries;
} exchange;

typedef struct object { /* a loaded library */
    uintptr_t base, begin, end;
    uintptr_t fixed_begin, fixed_end; /* written by the loader only: read-only now */
    const ElfW(Sym) * symbols;
    const char *names;
} object;

/* --- whose calls stay as they are -------------------------------------------------------- */

static bool is_of_the_system(const char *path)
{
    static const char *const names[] = {"ld-linux",      "linux-vdso", "libc.so",    "libm.so",
                                        "libpthread.so", "libdl.so",   "librt.so",   "libgmd_sim",
                                        "libcuda",       "libnvidia",  "libasan",    "libtsan",
                                        "liblsan",       "libubsan",   "libclang_rt"};
    const char *file = gmd_file_name(path);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strncmp(file, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* --- one library ------------------------------------------------------------------------- */

static uintptr_t address_of(host_function *function)
{
    uintptr_t address;
    memcpy(&address, &function, sizeof address);
    return address;
}

static size_t find_call(const exchange *e, const char *name)
{
    size_t i = 0;
    while (i < e->call_count && strcmp(e->calls[i].name, name) != 0) {
        i++;
    }
    return i;
}

static void write_entry(const object *o, uintptr_t *entry, uintptr_t value)
{
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t page = (uintptr_t)entry & ~(page_bytes - 1);
    bool is_fixed =
        page >= (o->fixed_begin & ~(page_bytes - 1)) && page < (o->fixed_end & ~(page_bytes - 1));
    void *at = (char *)entry - ((uintptr_t)entry - page);
    if (is_fixed && mprotect(at, page_bytes, PROT_READ | PROT_WRITE) != 0) {
        return;
    }
    __atomic_store_n(entry, value, __ATOMIC_RELEASE);
    if (is_fixed) {
        mprotect(at, page_bytes, PROT_READ);
    }
}

/* An entry that was not called through yet leads into the library itself. */
static void exchange_entry(exchange *e, const object *o, const ElfW(Rela) * r)
{
    unsigned type = (unsigned)ELF64_R_TYPE(r->r_info);
    const ElfW(Sym) *symbol = &o->symbols[ELF64_R_SYM(r->r_info)];
    if ((type != (unsigned)IN_CALL_TABLE && type != (unsigned)IN_TABLE &&
         type != (unsigned)IN_DATA) ||
        symbol->st_shndx != SHN_UNDEF || !symbol->st_name) {
        return;
    }
    size_t i = find_call(e, o->names + symbol->st_name);
    if (i == e->call_count) {
        return;
    }
    uintptr_t *entry = (uintptr_t *)(o->base + r->r_offset); /* NOLINT(performance-no-int-to-ptr) */
    uintptr_t value = *entry, ours = address_of(e->calls[i].ours);
    bool is_unbound = value >= o->begin && value < o->end;
    if (value == e->real[i] || is_unbound) {
        write_entry(o, entry, ours);
        value = *entry;
    }
    e->entries += value == ours;
}

typedef struct relocations {
    uintptr_t at;
    size_t bytes;
} relocations;

static void exchange_all(exchange *e, const object *o, relocations list)
{
    const ElfW(Rela) *r = (const ElfW(Rela) *)list.at; /* NOLINT(performance-no-int-to-ptr) */
    for (size_t i = 0; r && i < list.bytes / sizeof *r; i++) {
        exchange_entry(e, o, &r[i]);
    }
}

static void exchange_in(exchange *e, object *o, const ElfW(Dyn) * entries)
{
    relocations of_calls = {0}, others = {0};
    bool has_addends = true; /* else they have another form, which these machines do not use */
    for (const ElfW(Dyn) *d = entries; d->d_tag != DT_NULL; d++) {
        switch (d->d_tag) {
        case DT_SYMTAB:
            o->symbols = (const ElfW(Sym) *)d->d_un.d_ptr; /* NOLINT(performance-no-int-to-ptr) */
            break;
        case DT_STRTAB:
            o->names = (const char *)d->d_un.d_ptr; /* NOLINT(performance-no-int-to-ptr) */
            break;
        case DT_JMPREL:
            of_calls.at = d->d_un.d_ptr;
            break;
        case DT_PLTRELSZ:
            of_calls.bytes = d->d_un.d_val;
            break;
        case DT_PLTREL:
            has_addends = d->d_un.d_val == DT_RELA;
            break;
        case DT_RELA:
            others.at = d->d_un.d_ptr;
            break;
        case DT_RELASZ:
            others.bytes = d->d_un.d_val;
            break;
        default:
            break;
        }
    }
    if (o->symbols && o->names && has_addends) {
        exchange_all(e, o, others);
        exchange_all(e, o, of_calls);
    }
}

static bool holds(const struct dl_phdr_info *info, uintptr_t address)
{
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && address - info->dlpi_addr - p->p_vaddr < p->p_memsz) {
            return true;
        }
    }
    return false;
}

static int visit(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    exchange *e = context;
    const ElfW(Dyn) *dynamic = NULL;
    object o = {.base = info->dlpi_addr, .begin = UINTPTR_MAX};
    if (!*info->dlpi_name || is_of_the_system(info->dlpi_name) ||
        holds(info, address_of((host_function *)host_calls_exchange))) {
        return 0;
    }
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t at = o.base + p->p_vaddr;
        if (p->p_type == PT_LOAD) {
            o.begin = at < o.begin ? at : o.begin;
            o.end = at + p->p_memsz > o.end ? at + p->p_memsz : o.end;
        } else if (p->p_type == PT_GNU_RELRO) {
            o.fixed_begin = at;
            o.fixed_end = at + p->p_memsz;
        } else if (p->p_type == PT_DYNAMIC) {
            dynamic = (const ElfW(Dyn) *)at; /* NOLINT(performance-no-int-to-ptr) */
        }
    }
    if (dynamic) {
        exchange_in(e, &o, dynamic);
    }
    return 0;
}

size_t host_calls_exchange(const host_call *calls, size_t count)
{
    exchange e = {.calls = calls, .call_count = count < CALLS_MAX ? count : CALLS_MAX};
    for (size_t i = 0; i < e.call_count; i++) {
        void *real = dlsym(RTLD_DEFAULT, calls[i].name);
        memcpy(&e.real[i], &real, sizeof real);
    }
    dl_iterate_phdr(visit, &e);
    return e.entries;
}
