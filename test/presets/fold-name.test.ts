import { foldName } from '../../src/presets/fold-name.js';

/** Of a spelling: `victim` with something in it. */
const inside = (text: string): string => `vic${text}tim`;

describe('S6 a folded name', () => {
  test.each<[string, string]>([
    ['case', 'ViCTiM'],
    ['blanks around', ' \t\u00a0victim\u2003\u3000 '],
    ['full width', 'ｖｉｃｔｉｍ'],
    ['accents', 'vićtïm'],
    ['combining marks', 'v\u0301i\u0308ctim\u20dd'],
    ['the dotless i', 'vıctım'],
    ['the dotted I', 'VİCTİM'],
    ['NUL', inside('\0')],
    ['a zero-width joiner', inside('\u200d')],
    ['a right-to-left override', inside('\u202e')],
    ['a byte-order mark', inside('\ufeff')],
    ['a soft hyphen', inside('\u00ad')],
    ['a variation selector', inside('\ufe0f')],
    ['a filler', inside('\u3164')],
    ['a lone surrogate', inside('\ud800')],
    ['a private character', inside('\ue000')],
    ['an unassigned character', inside('\u0378')],
    ['a character beyond the first plane', inside('😀')],
    ['letters beyond the first plane', 'victim\u{10428}'],
  ])('does not tell %s', (_name, spelling) => {
    expect(foldName(spelling)).toBe('victim');
  });

  test('does not tell a control or format character, a mark, or one that is ignored, of all that there are', () => {
    const told = [];
    for (let code = 0; code <= 0x10ffff; code += 1) {
      const character = String.fromCodePoint(code);
      if (!/[\p{Cc}\p{Cf}\p{M}\p{Default_Ignorable_Code_Point}]/u.test(character)) continue;
      if (foldName(inside(character)) !== 'victim' || foldName(`victim${character}`) !== 'victim')
        told.push(code.toString(16));
    }
    expect(told).toEqual([]);
  });

  test.each<[string, string]>([
    ['straße', 'strasse'],
    ['STRAẞE', 'strasse'],
    ['\u212aelvin', 'kelvin'],
    ['ﬁſh', 'fish'],
    ['Ångström', 'angstrom'],
    ['\u212bngstrom', 'angstrom'],
    ['Łukasz Søren Đorđe', 'lukasz soren dorde'],
    ['Æsop', 'aesop'],
    ['user٣', 'user3'],
    ['user९', 'user9'],
    ['user０', 'user0'],
    ['user②', 'user2'],
  ])('%s is %s', (spelling, folded) => {
    expect(foldName(spelling)).toBe(folded);
  });

  test.each([
    'a@b.c',
    'first.last+tag@example.com',
    'user 1',
    '한국',
    '山田',
    'иван',
    'עברית',
    "o'neil",
    '-_~',
  ])('%s is as it is', name => {
    expect(foldName(name)).toBe(name);
  });

  test('of a folded name is itself, for every character there is', () => {
    const others = [];
    for (let code = 0; code <= 0x10ffff; code += 1) {
      const once = foldName(`a${String.fromCodePoint(code)}b`)!;
      if (foldName(once) !== once) others.push(code.toString(16));
    }
    expect(others).toEqual([]);
  });

  test.each(['', '   ', '\0\u200b\u0301', '😀'])('%j has nothing left', text => {
    expect(foldName(text)).toBeUndefined();
  });

  // Marks of changing classes, which decomposing has to sort; a character that becomes eighteen; blanks; and so on.
  test.each([
    '\u0316\u0301',
    '\ufdfa',
    '\u0f77',
    ' ',
    '\0',
    '\u0669',
    'ß',
    '\u0344',
    'a \u0301',
    '\ud55c',
    '😀',
  ])('of 64 kB of %j takes milliseconds', piece => {
    const text = piece.repeat(Math.ceil(65_536 / Buffer.byteLength(piece)));
    const spent = Array.from({ length: 5 }, () => {
      const start = performance.now();
      foldName(`x${text}x`);
      return performance.now() - start;
    });
    // The quickest of five: the machine may be busy.
    expect(Math.min(...spent)).toBeLessThan(5);
  });
});
