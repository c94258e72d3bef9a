/* gmd_xml.h - text in XML 1.0. */
#ifndef GMD_REPORTS_XML_H
#define GMD_REPORTS_XML_H

#include <stdio.h>

/* Escaped; characters that XML cannot hold are left out. */
void gmd_put_xml(const char *text, FILE *out);
/* ` name="value"` */
void gmd_put_attribute(const char *name, const char *value, FILE *out);

#endif
