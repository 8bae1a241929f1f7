/**
 * Control and format characters, marks, characters without a weight of their own, and all beyond the first plane, which
 * older collations of MySQL and SQL Server take for one another or for nothing.
 */
const UNSEEN = /[\p{Other}\p{Mark}\p{Default_Ignorable_Code_Point}\u{10000}-\u{10FFFF}]/gu;

/** Longer than any name; what comes behind is cut off, so that a long text costs no more time than reading it. */
const LONGEST = 1024;

/** What nearly all come as, and what folds to itself. */
const PLAIN = /^[!-@[-~]{1,1024}$/;

/** Latin letters that have no decomposition, and yet the weight of others. */
const ALIKE: Readonly<Record<string, string>> = {
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  đ: 'd',
  ð: 'd',
  ħ: 'h',
  ł: 'l',
};

/**
 * One text for all spellings under which a database may find the same account, or `undefined` when nothing is left.
 * `A@B.c ` and `a@b.c` are one; so is whatever the more tolerant collations take for equal (those of MySQL and MariaDB
 * ignore case, accents, width, trailing blanks, control and format characters, and in which script a digit is written),
 * for each spelling would otherwise allow five more guesses.
 *
 * Two accounts that meet here share a counter, of one address only. The folded form of a folded form is itself, so a name
 * that came in its folded form is the only one of its kind that is spelled so.
 */
export function foldName(text: string): string | undefined {
  if (PLAIN.test(text)) return text;
  const folded = text
    // Before decomposing, too: that takes quadratic time for a long row of marks.
    .replace(UNSEEN, '')
    .trim()
    .slice(0, LONGEST)
    .normalize('NFKD')
    .replace(UNSEEN, '')
    // Upper case makes SS of ß, and I of the dotless ı. Lower case first, for ẞ is in upper case already.
    .toLowerCase()
    .toUpperCase()
    .toLowerCase()
    .replace(/[æœøđðħł]/g, letter => ALIKE[letter] ?? letter)
    .replace(/[^\P{Decimal_Number}0-9]/gu, digitOf)
    .trim()
    // Back together what decomposing took apart without a loss: the syllables of Hangul.
    .normalize('NFC');
  return folded === '' ? undefined : folded;
}

const digits = new Map<string, string>();

/** The decimal digits of a script are ten characters in a row, from zero (a promise of Unicode). */
function digitOf(character: string): string {
  let digit = digits.get(character);
  if (digit === undefined) {
    const code = character.charCodeAt(0);
    let value = 0;
    while (value < 9 && /\p{Decimal_Number}/u.test(String.fromCharCode(code - value - 1))) value += 1;
    digit = String(value);
    digits.set(character, digit);
  }
  return digit;
}
