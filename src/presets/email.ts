/**
 * One text for one mailbox, or `undefined` when there is none. `A@B.c ` and `a@b.c` are one; so is everything else that
 * the more tolerant databases take for equal (the default collation of MySQL 8 ignores case, accents, width and invisible
 * characters), for each spelling under which an account can be found would otherwise allow five more guesses. Two mailboxes
 * that meet here share a counter, of one address only.
 */
export function foldEmail(text: string): string | undefined {
  const folded = text
    .normalize('NFKD')
    .replace(/[\p{Mark}\p{Default_Ignorable_Code_Point}]/gu, '')
    // Upper case first: ß becomes SS, and the dotless ı an I.
    .toUpperCase()
    .toLowerCase()
    .trim();
  return folded === '' ? undefined : folded;
}
