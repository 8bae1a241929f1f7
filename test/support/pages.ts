// Pages of the documentation whose snippets are run.
import path from 'node:path';
import ts from 'typescript';
import { codeBlocks, readMarkdown } from './markdown.js';
import type { CodeBlock } from './markdown.js';

const root = path.join(__dirname, '../..');

export class DocPage {
  readonly blocks: readonly CodeBlock[];
  readonly #snippets: readonly CodeBlock[];
  readonly #asked = new Set<CodeBlock>();

  constructor(readonly file: string) {
    this.blocks = codeBlocks(readMarkdown(file));
    this.#snippets = this.blocks.filter(({ language }) => language === 'js' || language === 'ts');
  }

  /** The code of a snippet, for a test that runs it. */
  snippet(heading: string, index = 0): string {
    const found = this.#snippets.filter(block => block.heading === heading)[index];
    if (found === undefined) {
      throw new Error(`${this.file} has no snippet ${String(index)} below "${heading}"`);
    }
    this.#asked.add(found);
    return found.code;
  }

  /** For `afterAll`, and not a test of its own, so that one test alone can be run. */
  expectAllRun(): void {
    const left = this.#snippets.filter(block => !this.#asked.has(block));
    if (this.#asked.size < 2 && this.#snippets.length > 2) return;
    if (left.length > 0) {
      throw new Error(
        `nothing runs these snippets of ${this.file}: ${left.map(({ heading, line }) => `${heading} (line ${String(line)})`).join(', ')}`,
      );
    }
  }

  /** What the compiler has against the snippets, for a reader to whom `readersOwn` is declared. */
  typeMistakes(readersOwn: string): string[] {
    const { config } = ts.readConfigFile(path.join(root, 'tsconfig.json'), name => ts.sys.readFile(name)) as {
      config: { compilerOptions: object };
    };
    const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root);
    const folder = path.join(root, 'test/examples');
    const files = new Map(
      this.#snippets.map(({ code, line }) => [
        path.join(folder, `${path.basename(this.file, '.md')}-line-${String(line)}.mts`),
        code,
      ]),
    );
    files.set(path.join(folder, 'readers-own.d.mts'), readersOwn);
    const settings: ts.CompilerOptions = {
      ...options,
      types: ['node'],
      experimentalDecorators: true,
      // These hold for this repository; the pages are JavaScript.
      noImplicitAny: false,
      noUnusedLocals: false,
      noUnusedParameters: false,
      noImplicitReturns: false,
      noPropertyAccessFromIndexSignature: false,
      noUncheckedIndexedAccess: false,
      strictNullChecks: false,
      strictPropertyInitialization: false,
      exactOptionalPropertyTypes: false,
    };
    const host = ts.createCompilerHost(settings);
    const { fileExists, readFile, getSourceFile } = host;
    host.fileExists = name => files.has(name) || fileExists(name);
    host.readFile = name => files.get(name) ?? readFile(name);
    host.getSourceFile = (name, languageVersion, ...rest) => {
      const text = files.get(name);
      return text === undefined
        ? getSourceFile(name, languageVersion, ...rest)
        : ts.createSourceFile(name, text, languageVersion, true);
    };
    const program = ts.createProgram([...files.keys()], settings, host);
    return [...files.keys()].flatMap(name =>
      ts.getPreEmitDiagnostics(program, program.getSourceFile(name)).map(({ messageText }) => {
        return `${path.basename(name)}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
      }),
    );
  }
}
