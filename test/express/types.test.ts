import { join } from 'node:path';
import ts from 'typescript';

const ROOT = join(__dirname, '../..');

/** Everything that tsc says of a file under the strict options of this project, with the types of one Express. */
function complaints(types: string): string[] {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), path => ts.sys.readFile(path));
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);
  const program = ts.createProgram([join(ROOT, 'test/fixtures/types-app.ts')], {
    ...options,
    types: ['node'],
    paths: { ...options.paths, express: [join(ROOT, `node_modules/@types/${types}/index.d.ts`)] },
  });
  const used = program.getSourceFiles().some(({ fileName }) => fileName.includes(`/@types/${types}/`));
  expect(used).toBe(true);
  return ts.getPreEmitDiagnostics(program).map(({ file, start, messageText }) => {
    const line = file === undefined ? 0 : file.getLineAndCharacterOfPosition(start ?? 0).line + 1;
    return `${file?.fileName ?? ''}:${String(line)} ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
  });
}

test.each(['express', 'express4'])(
  'a program that uses everything compiles without a cast, with the types of @types/%s',
  types => {
    expect(complaints(types)).toEqual([]);
  },
  120_000,
);
