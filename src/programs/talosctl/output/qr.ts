/**
 * QR codes (ISO/IEC 18004) of short texts: capital letters, digits and dashes in version 3 at level M, of which a seventh may be
 * unreadable. That is one block of code words and one mask, which is all that a recovery key needs.
 */

const letters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:'
const size = 29
const dataBytes = 44
const checkBytes = 26
/** Letters that fit. */
const longest = 61
/** Format of level M with mask 0: (row + column) % 2. */
const format = 0b101010000010010
/** Light modules that a reader needs around it. */
const quiet = 4

type Module = boolean | undefined

/** The modules of a code by row, true where dark. Throws RangeError for a text that does not fit. */
export function qrModules(text: string): boolean[][] {
  const data = encoded(text)
  const rows: Module[][] = Array.from({ length: size }, () => Array<Module>(size).fill(undefined))
  drawPatterns(rows)
  const bits = [...data, ...checkOf(data)].flatMap((byte) => Array.from({ length: 8 }, (_, bit) => ((byte >>> (7 - bit)) & 1) === 1))
  let next = 0
  for (const [row, column] of path())
    if (rows[row]?.[column] === undefined) put(rows, row, column, (bits[next++] ?? false) !== ((row + column) % 2 === 0))
  return rows.map((row) => row.map((module) => module === true))
}

/** A code as lines of text, two rows of modules in each; black on white where colours are on. */
export function qrText(text: string, colors: boolean): string {
  const modules = qrModules(text)
  const dark = (row: number, column: number) => modules[row]?.[column] ?? false
  let lines = ''
  for (let row = -quiet; row < size + quiet; row += 2) {
    let line = ''
    for (let column = -quiet; column < size + quiet; column++)
      line += [' ', '▄', '▀', '█'][(dark(row, column) ? 2 : 0) + (dark(row + 1, column) ? 1 : 0)]
    lines += colors ? `\u001b[30;107m${line}\u001b[0m\n` : `${line}\n`
  }
  return lines
}

const put = (rows: Module[][], row: number, column: number, dark: boolean): void => {
  const line = rows[row]
  if (line && column >= 0 && column < size) line[column] = dark
}

/** Mode, length, eleven bits for two letters, and padding. */
function encoded(text: string): number[] {
  const values = [...text].map((letter) => letters.indexOf(letter))
  if (values.length > longest || values.includes(-1)) throw new RangeError('a text that this code cannot hold')
  let bits = `0010${values.length.toString(2).padStart(9, '0')}`
  for (let at = 0; at < values.length; at += 2) {
    const [first = 0, second] = values.slice(at, at + 2)
    bits += second === undefined ? first.toString(2).padStart(6, '0') : (first * 45 + second).toString(2).padStart(11, '0')
  }
  bits = `${bits}0000`.slice(0, dataBytes * 8)
  const bytes = (bits.match(/.{1,8}/g) ?? []).map((byte) => Number.parseInt(byte.padEnd(8, '0'), 2))
  for (let pad = 0xec; bytes.length < dataBytes; pad ^= 0xec ^ 0x11) bytes.push(pad)
  return bytes
}

/** Multiplies in GF(256) with the polynomial 0x11d. */
function multiply(a: number, b: number): number {
  let product = 0
  for (let bit = 7; bit >= 0; bit--) product = (product << 1) ^ (product >>> 7 ? 0x11d : 0) ^ ((b >>> bit) & 1 ? a : 0)
  return product
}

/** The Reed-Solomon code words of the data. */
function checkOf(data: readonly number[]): number[] {
  // The generator polynomial without its leading coefficient, highest power first.
  const generator = Array<number>(checkBytes).fill(0)
  generator[checkBytes - 1] = 1
  for (let degree = 0, root = 1; degree < checkBytes; degree++, root = multiply(root, 2))
    for (let at = 0; at < checkBytes; at++) generator[at] = multiply(generator[at] ?? 0, root) ^ (generator[at + 1] ?? 0)
  let rest = Array<number>(checkBytes).fill(0)
  for (const byte of data) {
    const factor = byte ^ (rest[0] ?? 0)
    rest = generator.map((coefficient, at) => (rest[at + 1] ?? 0) ^ multiply(coefficient, factor))
  }
  return rest
}

/** What every code of this version has: corners, the small square, lines between them, and the format. */
function drawPatterns(rows: Module[][]): void {
  for (let at = 8; at < size - 8; at++) {
    put(rows, 6, at, at % 2 === 0)
    put(rows, at, 6, at % 2 === 0)
  }
  for (const [row, column] of [
    [3, 3],
    [3, size - 4],
    [size - 4, 3],
  ] as const)
    square(rows, row, column, 4, (distance) => distance !== 2 && distance !== 4)
  square(rows, size - 7, size - 7, 2, (distance) => distance !== 1)
  const bit = (index: number) => ((format >>> index) & 1) === 1
  for (let index = 0; index < 15; index++) {
    // Around the upper left corner, past the lines between the corners.
    if (index < 8) put(rows, index < 6 ? index : index + 1, 8, bit(index))
    else put(rows, 8, index === 8 ? 7 : 14 - index, bit(index))
    if (index < 8) put(rows, 8, size - 1 - index, bit(index))
    else put(rows, size - 15 + index, 8, bit(index))
  }
  put(rows, size - 8, 8, true)
}

function square(rows: Module[][], row: number, column: number, reach: number, dark: (distance: number) => boolean): void {
  for (let down = -reach; down <= reach; down++)
    for (let right = -reach; right <= reach; right++)
      if (rows[row + down]) put(rows, row + down, column + right, dark(Math.max(Math.abs(down), Math.abs(right))))
}

/** The order of modules: columns in pairs from the right, up and down in turn, past the vertical line. */
function* path(): Generator<[number, number]> {
  let up = true
  for (let right = size - 1; right > 0; right -= 2) {
    if (right === 6) right--
    for (let step = 0; step < size; step++) {
      const row = up ? size - 1 - step : step
      yield [row, right]
      yield [row, right - 1]
    }
    up = !up
  }
}
