/** A configuration fetched over HTTP(S) or TFTP. */
import { gunzipSync } from 'node:zlib'

import type { Store } from '../../../cosi/store.ts'
import { boundedBody } from '../../../wire/http/bounded-body.ts'
import { NetworkStatus } from '../../network/resources/network-status.ts'
import type { Outbound } from '../../outbound.ts'
import type { DeviceLogin } from './device-flow.ts'
import { type Look, largestConfig } from './source.ts'
import { fetchTftp } from './tftp.ts'
import { fillVariables, valuesOf } from './variables.ts'

/** Downloads a text after filling in its URL. Throws a one-line error; the caller retries. */
export async function download(
  address: string,
  { store, outbound, login }: { store: Store; outbound: Pick<Outbound, 'fetch'>; login?: DeviceLogin | undefined },
  look: Look,
): Promise<string> {
  const { signal, log } = look
  const url = await fillVariables(address, store, signal)
  if (!(await hasAddress(store, signal))) throw new Error(`fetch "${withoutSecrets(url)}": the machine has no address in its network yet`)
  const shown = withoutSecrets(url)
  const named = login ? await valuesOf(login.variables, 'authorize the download', store, signal) : {}
  const authorization = await login?.authorization(url, named, look)
  log.info('fetching machine configuration', { url: shown })
  const body = /^tftp:/i.test(url)
    ? await fetchTftp(url, largestConfig, signal).catch((error) => {
        throw new Error(`fetch "${shown}": ${reason(error)}`)
      })
    : await fetchHttp(url, shown, { authorization, outbound, login }, signal)
  if (body.length === 0) throw new Error(`fetch "${shown}": the answer is empty`)
  return unpacked(body, shown).toString()
}

async function fetchHttp(
  url: string,
  shown: string,
  {
    authorization,
    outbound,
    login,
  }: { authorization: string | undefined; outbound: Pick<Outbound, 'fetch'>; login: DeviceLogin | undefined },
  signal: AbortSignal,
): Promise<Buffer> {
  let response: Response
  try {
    const headers = { accept: 'application/yaml, text/yaml, */*', ...(authorization && { authorization }) }
    response = await outbound.fetch(url, { signal, headers })
  } catch (error) {
    throw new Error(`fetch "${shown}": ${signal.aborted ? 'no answer in time' : reason(error)}`)
  }
  if (!response.ok) {
    await response.body?.cancel()
    if (response.status === 401) login?.forget()
    throw new Error(`fetch "${shown}": the server answered ${response.status}${response.statusText ? ` ${response.statusText}` : ''}`)
  }
  return boundedBody(response, largestConfig).catch((error) => {
    throw new Error(`fetch "${shown}": ${signal.aborted ? 'it did not end in time' : reason(error)}`)
  })
}

/** A file that is compressed with gzip (RFC 1952) by itself, unlike a body that is only transferred so. */
function unpacked(body: Buffer, shown: string): Buffer {
  if (body[0] !== 0x1f || body[1] !== 0x8b) return body
  try {
    return gunzipSync(body, { maxOutputLength: largestConfig })
  } catch (error) {
    throw new Error(`unpack "${shown}": ${reason(error)}`)
  }
}

/** Without an address nothing can be downloaded. */
async function hasAddress(store: Store, signal: AbortSignal): Promise<boolean> {
  try {
    await store.until(NetworkStatus, 'status', ({ spec }) => spec.addressReady, { signal })
    return true
  } catch {
    return false
  }
}

function reason(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string }
  const [line = ''] = (message ?? code ?? String(error)).split('\n')
  return line
}

/** The part of a URL that may be logged. */
function withoutSecrets(url: string): string {
  const { protocol, host, pathname, search } = new URL(url)
  return `${protocol}//${host}${pathname}${search}`
}
