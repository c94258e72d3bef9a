#include "elf_file.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
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

bool elf_file_is_whole(const char *path)
{
    Elf64_Ehdr header;
    struct stat info;
    FILE *file = fopen(path, "rbe");
    bool is_whole = true;
    if (file && fstat(fileno(file), &info) == 0 && read_at(file, 0, &header, sizeof header) &&
        memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64) {
        is_whole = holds_segments(file, &header, (uint64_t)info.st_size);
    }
    if (file) {
        fclose(file);
    }
    return is_whole;
}
