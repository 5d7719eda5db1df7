/** Configurations on the kernel command line: base64 of zstd of YAML, in any number of pieces. */

import { zstdDecompressSync } from 'node:zlib'
import { type Parameter, parameterValues } from '../../../wire/command-line.ts'
import { failedWith } from '../../../wire/errno.ts'
import { largestConfig, type Source } from './source.ts'

/** Read before the platform's. */
export const cmdlineEarly = (parameters: readonly Parameter[]): Source => onCommandLine('cmdline-early', 'talos.config.early', parameters)

/** Read after the platform's. */
export const cmdlineLate = (parameters: readonly Parameter[]): Source => onCommandLine('cmdline-late', 'talos.config.inline', parameters)

const onCommandLine = (name: string, parameter: string, parameters: readonly Parameter[]): Source => ({
  name,
  retried: false,
  look() {
    const pieces = parameterValues(parameters, parameter)
    return pieces.length === 0 ? undefined : decodeInline(pieces.join(''), parameter)
  },
})

/** Decodes a value. Throws a one-line error that names the parameter. */
export function decodeInline(value: string, parameter: string): string {
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(value)) throw new Error(`read "${parameter}": it is not base64`)
  try {
    return zstdDecompressSync(Buffer.from(value, 'base64'), { maxOutputLength: largestConfig }).toString()
  } catch (error) {
    const long = failedWith(error, 'ERR_BUFFER_TOO_LARGE')
    throw new Error(
      long
        ? `read "${parameter}": larger than ${largestConfig} bytes`
        : `read "${parameter}": it is base64, but not of something zstd made`,
    )
  }
}
