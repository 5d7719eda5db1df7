/** The files that a KMS reads again while it serves: its list of machines and its certificate. */
import { open } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import { tlsKey } from '../../../pki/key.ts'
import type { ServerTls } from '../../../rpc/http2/listen.ts'
import { codeOf } from '../../../wire/errno.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { longestMachines, MachinesError, parseMachines } from '../../kms/machines.ts'
import { UsageError } from '../failure.ts'

/** Most bytes of a certificate with its chain, or of a key. */
const longestPem = 256 << 10

/** Reads the list of machines. Throws UsageError. */
export async function readMachines(path: string): Promise<ReadonlySet<string>> {
  const text = await readBounded(path, longestMachines)
  try {
    return parseMachines(text)
  } catch (error) {
    if (error instanceof MachinesError) throw new UsageError(`machines "${path}": ${error.message}`)
    throw error
  }
}

/** Reads a certificate and its key, which belong together. Throws UsageError. */
export async function readTls(certPath: string, keyPath: string): Promise<ServerTls> {
  const [cert, key] = [await readBounded(certPath, longestPem), await readBounded(keyPath, longestPem)]
  try {
    const tls = { cert, key: tlsKey(key) }
    createSecureContext(tls)
    return tls
  } catch (error) {
    throw new UsageError(`certificate "${certPath}" and key "${keyPath}" cannot be used together: ${messageOf(error)}`)
  }
}

async function readBounded(path: string, longest: number): Promise<string> {
  try {
    const file = await open(path)
    try {
      const { size } = await file.stat()
      if (size > longest) throw new UsageError(`read "${path}": it has ${size} bytes, at most ${longest} are read`)
      return await file.readFile('utf8')
    } finally {
      await file.close()
    }
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(`read "${path}": ${codeOf(error)}`)
  }
}
