import { matches } from '../../../../pki/certificate.ts'
import { signCSR } from '../../../../pki/request.ts'
import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { writeNew } from '../../new-files.ts'
import { readText } from '../../read-text.ts'
import type { GenFlags } from './gen.ts'

/** Which request is signed by whom. */
export interface CrtOptions {
  ca: string
  csr: string
  name: string
  hours: number
}

/** Signs a request for a client of the machine API. */
export async function genCrt(io: Io, flags: GenFlags, { ca: path, csr, name, hours }: CrtOptions): Promise<void> {
  const ca = { crt: await readText(`${path}.crt`, 'authority'), key: await readText(`${path}.key`, 'authority') }
  if (!matches(ca)) throw new UsageError(`"${path}.key" is not the key of "${path}.crt"`)
  const crt = signCSR(await readText(csr, 'request'), { ca, usage: ['clientAuth'], lifetime: hours * 3600_000, now: io.now() })
  await writeNew([{ path: `${name}.crt`, content: crt, mode: 0o644 }], flags.force)
}
