/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a shell of the sandbox is given for a step of a template. Pure. Runs in atolld. */

/* A directory that is made. $1: absolute. */
extern const char script_directory[];

/*
 * An archive, which is read by tar from the standard input, and what it holds at its place. $1: what was copied, as its
 * client names it (with patterns), $2: where to, absolute, $3: "" or permissions, $4: what tar is told.
 */
extern const char script_copy[];

/* The words of a command of the client's: by bash, where the system has it. words: 5 and NULL. */
void script_command(const char *command, const char *words[6]);

/* The same that ends once the command has ended with 0, however often it has to be tried. */
void script_ready(const char *command, const char *words[6]);
