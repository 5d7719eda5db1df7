/** Configurations written on the kernel's command line: base64 of zstd of YAML, in as many pieces as it takes. */
import { zstdDecompressSync } from 'node:zlib'
import { type Parameter, parameterValues } from '../../../wire/command-line.ts'
import { largestConfig, type Source } from './source.ts'

/** Read before the platform is asked. */
export const cmdlineEarly = (parameters: readonly Parameter[]): Source => onCommandLine('cmdline-early', 'talos.config.early', parameters)

/** Read after the platform was asked. */
export const cmdlineLate = (parameters: readonly Parameter[]): Source => onCommandLine('cmdline-late', 'talos.config.inline', parameters)

const onCommandLine = (name: string, parameter: string, parameters: readonly Parameter[]): Source => ({
  name,
  retried: false,
  look() {
    const pieces = parameterValues(parameters, parameter)
    return pieces.length === 0 ? undefined : decodeInline(pieces.join(''), parameter)
  },
})

/** The text in a value. Throws one line that names the parameter. */
export function decodeInline(value: string, parameter: string): string {
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(value)) throw new Error(`read "${parameter}": it is not base64`)
  try {
    return zstdDecompressSync(Buffer.from(value, 'base64'), { maxOutputLength: largestConfig }).toString()
  } catch (error) {
    const long = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
    throw new Error(
      long
        ? `read "${parameter}": larger than ${largestConfig} bytes`
        : `read "${parameter}": it is base64, but not of something zstd made`,
    )
  }
}
