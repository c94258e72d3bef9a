# canary_image.c from FATBIN, what nvcc made of canary.cu: cmake -DFATBIN=... -DOUT=... -P this file.
file(READ ${FATBIN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(................................................................................)"
  "\\1\n    " bytes "${bytes}")
file(WRITE ${OUT} "/* Made by nvcc from canary.cu. */\n#include \"canary_image.h\"\n\n"
  "_Alignas(8) const unsigned char canary_image[] = {\n    ${bytes}\n};\n"
  "const size_t canary_image_size = sizeof canary_image;\n")
