/* UTF-8 as RFC 3629 has it: no overlong form, no surrogate, nothing beyond U+10FFFF. */
#ifndef KILN_TRITON_UTF8_H
#define KILN_TRITON_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum { UTF8_WRONG = 0, UTF8_CUT = -1 };

/* The bytes of the character at text, which has size bytes, at least 1; UTF8_WRONG if none begins there; UTF8_CUT if
 * one does and its end is not there yet. */
static inline int utf8_character(const char *text, size_t size) {
    const unsigned char *t = (const unsigned char *)text;
    if (t[0] < 0x80) return 1;
    int length = t[0] < 0xc2 ? 0 : t[0] < 0xe0 ? 2 : t[0] < 0xf0 ? 3 : t[0] < 0xf5 ? 4 : 0;
    for (int i = 1; i < length; i++) {
        /* The second byte alone says whether a character is overlong, a surrogate or too great. */
        unsigned char least = i > 1 ? 0x80 : t[0] == 0xe0 ? 0xa0 : t[0] == 0xf0 ? 0x90 : 0x80;
        unsigned char most = i > 1 ? 0xbf : t[0] == 0xed ? 0x9f : t[0] == 0xf4 ? 0x8f : 0xbf;
        if ((size_t)i == size) return UTF8_CUT;
        if (t[i] < least || t[i] > most) return UTF8_WRONG;
    }
    return length;
}

/* Where the first byte is that belongs to no character; size: there is none. */
static inline size_t utf8_wrong_byte(const char *text, size_t size) {
    size_t at = 0;
    while (at < size) {
        int length = utf8_character(text + at, size - at);
        if (length <= 0) return at;
        at += (size_t)length;
    }
    return size;
}

#endif
