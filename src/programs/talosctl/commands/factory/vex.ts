/** The statements on flaws that the operator of the image factory gives. */
import { readFile, stat } from 'node:fs/promises'
import { parseVex, type VexDocument, VexError } from '../../../../oci/openvex.ts'
import { codeOf } from '../../../../wire/errno.ts'
import { UsageError } from '../../failure.ts'

const longest = 4 << 20

/** Reads and checks the documents, when the factory starts. Throws UsageError with a line for each fault. */
export async function givenVex(paths: readonly string[]): Promise<VexDocument[]> {
  const read = await Promise.all(paths.map(documentOf))
  const faults = read.flatMap((each) => (Array.isArray(each) ? each : []))
  if (faults.length > 0) throw new UsageError(faults.join('\n'))
  return read.flatMap((each) => (Array.isArray(each) ? [] : [each]))
}

/** A document, or its faults. */
async function documentOf(path: string): Promise<VexDocument | string[]> {
  try {
    const { size } = await stat(path)
    if (size > longest) return [`--vex "${path}" has ${size} bytes, at most ${longest} are read`]
    return parseVex(await readFile(path, 'utf8'))
  } catch (error) {
    if (error instanceof VexError) return error.faults.map((fault) => `--vex "${path}": ${fault}`)
    return [`--vex "${path}": ${codeOf(error)}`]
  }
}
