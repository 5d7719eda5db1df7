/** What a parser under test is, and what inputs are made of. */

/** A parser under test. */
export interface Target {
  readonly seeds: readonly Uint8Array[]
  /** Names of errors that are answers. */
  readonly answers: readonly string[]
  run(input: Uint8Array): void | Promise<void>
}

/** Texts, single bytes and pieces, one after another. */
export const bytes = (...values: (string | number | Uint8Array)[]) =>
  Buffer.concat(
    values.map((value) => (typeof value === 'string' ? Buffer.from(value) : typeof value === 'number' ? Buffer.from([value]) : value)),
  )

/** An archive of one file. */
export function tarOf(name: string, content: string): Buffer {
  const header = Buffer.alloc(512)
  header.write(name.slice(0, 100), 0)
  header.write('0000644\0', 100)
  header.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124)
  header.write('00000000000\0', 136)
  header.write('        ', 148)
  header.write('0', 156)
  header.write('ustar\x0000', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  const body = Buffer.alloc(Math.ceil(content.length / 512) * 512)
  body.write(content, 0)
  return Buffer.concat([header, body])
}

/** Runs a parser; throws what is no answer of it. */
export async function feed(target: Target, input: Uint8Array): Promise<void> {
  try {
    await target.run(input)
  } catch (error) {
    if (!(error instanceof Error) || !target.answers.includes(error.name)) throw error
  }
}
