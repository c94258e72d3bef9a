#include "elf_file.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool read_at(FILE *file, uint64_t offset, void *out, size_t size)
{
    return offset <= INT64_MAX && fseeko(file, (off_t)offset, SEEK_SET) == 0 &&
           fread(out, 1, size, file) == size;
}

static bool holds_segments(FILE *file, const Elf64_Ehdr *header, uint64_t size)
{
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        uint64_t at = header->e_phoff + (uint64_t)i * header->e_phentsize, end;
        if (!read_at(file, at, &segment, sizeof segment)) {
            return false;
        }
        if (segment.p_type == PT_LOAD &&
            (__builtin_add_overflow(segment.p_offset, segment.p_filesz, &end) || end > size)) {
            return false;
        }
    }
    return true;
}

/* Opens an ELF file of 64 bits; NULL: it is none, or cannot be read. */
static FILE *open_elf(const char *path, Elf64_Ehdr *header, uint64_t *size)
{
    struct stat info;
    FILE *file = fopen(path, "rbe");
    if (file && fstat(fileno(file), &info) == 0 && read_at(file, 0, header, sizeof *header) &&
        memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64) {
        *size = (uint64_t)info.st_size;
        return file;
    }
    if (file) {
        fclose(file);
    }
    return NULL;
}

const char *elf_file_unfit(const char *path)
{
    static const struct {
        unsigned machine;
        const char *words;
    } others[] = {
        {EM_AARCH64, "is for 64-bit ARM (aarch64), and gmd loads libraries for x86-64"},
        {EM_386, "is for 32-bit x86, and gmd loads libraries for x86-64"},
        {EM_PPC64, "is for POWER (ppc64), and gmd loads libraries for x86-64"},
    };
    struct {
        unsigned char ident[EI_NIDENT];
        uint16_t type, machine;
    } head;
    FILE *file = fopen(path, "rbe");
    if (!file) {
        return NULL;
    }
    bool is_read = read_at(file, 0, &head, sizeof head);
    fclose(file);
    if (!is_read || memcmp(head.ident, ELFMAG, SELFMAG) != 0) {
        return "is no shared library, as cc -shared -fPIC makes one";
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (head.machine == others[i].machine) {
            return others[i].words;
        }
    }
    return head.machine == EM_X86_64
               ? NULL
               : "is for another processor, and gmd loads libraries for x86-64";
}

bool elf_file_is_whole(const char *path)
{
    Elf64_Ehdr header;
    uint64_t size;
    FILE *file = open_elf(path, &header, &size);
    bool is_whole = !file || holds_segments(file, &header, size);
    if (file) {
        fclose(file);
    }
    return is_whole;
}

/* --- functions ---------------------------------------------------------------------------- */

/* A section as it is in the file, with a zero behind it; NULL: it is not within the file. */
static void *read_section(FILE *file, const Elf64_Shdr *section, uint64_t file_size)
{
    uint64_t end;
    if (__builtin_add_overflow(section->sh_offset, section->sh_size, &end) || end > file_size) {
        return NULL;
    }
    char *bytes = malloc(section->sh_size + 1);
    if (bytes && !read_at(file, section->sh_offset, bytes, section->sh_size)) {
        free(bytes);
        return NULL;
    }
    if (bytes) {
        bytes[section->sh_size] = '\0';
    }
    return bytes;
}

static bool read_section_header(FILE *file, const Elf64_Ehdr *header, unsigned index,
                                Elf64_Shdr *section)
{
    return index < header->e_shnum &&
           read_at(file, header->e_shoff + (uint64_t)index * header->e_shentsize, section,
                   sizeof *section);
}

static bool is_exported_function(const Elf64_Sym *symbol)
{
    unsigned binding = ELF64_ST_BIND(symbol->st_info);
    return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
           (binding == STB_GLOBAL || binding == STB_WEAK);
}

typedef struct symbol_table {
    Elf64_Sym *symbols;
    char *names;
    uint64_t count, name_bytes;
} symbol_table;

static symbol_table read_dynamic_symbols(FILE *file, const Elf64_Ehdr *header, uint64_t size)
{
    Elf64_Shdr section, strings;
    for (unsigned i = 0; read_section_header(file, header, i, &section); i++) {
        if (section.sh_type == SHT_DYNSYM &&
            read_section_header(file, header, section.sh_link, &strings)) {
            return (symbol_table){.symbols = read_section(file, &section, size),
                                  .names = read_section(file, &strings, size),
                                  .count = section.sh_size / sizeof(Elf64_Sym),
                                  .name_bytes = strings.sh_size};
        }
    }
    return (symbol_table){0};
}

static bool is_needed(const Elf64_Sym *symbol)
{
    return symbol->st_shndx == SHN_UNDEF && symbol->st_name;
}

static bool each_symbol(const char *path, bool (*is_meant)(const Elf64_Sym *symbol),
                        void (*visit)(void *context, const char *name), void *context)
{
    Elf64_Ehdr header;
    uint64_t size;
    FILE *file = open_elf(path, &header, &size);
    if (!file) {
        return false;
    }
    symbol_table table = read_dynamic_symbols(file, &header, size);
    bool is_read = table.symbols && table.names;
    for (uint64_t i = 0; is_read && i < table.count; i++) {
        const Elf64_Sym *symbol = &table.symbols[i];
        if (is_meant(symbol) && symbol->st_name < table.name_bytes) {
            visit(context, table.names + symbol->st_name);
        }
    }
    free(table.symbols);
    free(table.names);
    fclose(file);
    return is_read;
}

bool elf_file_each_function(const char *path, void (*visit)(void *context, const char *name),
                            void *context)
{
    return each_symbol(path, is_exported_function, visit, context);
}

bool elf_file_each_needed(const char *path, void (*visit)(void *context, const char *name),
                          void *context)
{
    return each_symbol(path, is_needed, visit, context);
}
