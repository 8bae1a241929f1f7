/** What is wrong with the options of a preset is told in its words, not in those of the rules that it makes of them. */
export function expectMistake(make: () => unknown, code: string, option: string): void {
  let error: Partial<Record<'code' | 'option' | 'message', string>> = {};
  try {
    make();
  } catch (thrown) {
    error = thrown as typeof error;
  }
  expect(error).toMatchObject({ code, option, message: expect.stringContaining(option) });
  expect(error.message).not.toContain('rules[');
}
