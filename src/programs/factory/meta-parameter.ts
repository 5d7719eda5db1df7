/** Values of META as a kernel argument, which a machine without META takes them from until its disk has one. */
import { gzipSync } from 'node:zlib'
import { CommandLineError } from '../../oci/kernel-command-line.ts'

/** Bytes from which on the values are compressed. */
const compressedFrom = 257

/** `talos.environment=INSTALLER_META_BASE64=…` for values by tag. Throws CommandLineError for one that the notation cannot hold. */
export function metaParameter(values: readonly { readonly key: number; readonly value: string }[]): string {
  const wrong = values.find(({ value }) => value.includes(';'))
  if (wrong) throw new CommandLineError(`the value of META tag ${wrong.key} has a ";", which ends a value on the kernel command line`)
  const text = Buffer.from(values.map(({ key, value }) => `0x${key.toString(16)}=${value}`).join(';'))
  const bytes = text.length < compressedFrom ? text : gzipSync(text)
  return `talos.environment=INSTALLER_META_BASE64=${bytes.toString('base64')}`
}
