/** Shared addresses that the API of a cloud gives to one machine at a time. */

import type { SpecOf } from '../../../../cosi/resource.ts'
import { isObject } from '../../../../document/is-object.ts'
import { containsAddress, tryPrefix } from '../../../../wire/prefix.ts'
import { type Loose, readJson } from '../../platform/loose.ts'
import type { fetchText } from '../../platform/transport.ts'
import type { OperatorSpec } from '../../resources/operator-spec.ts'

/** An address that one machine has. */
export interface SharedAddress {
  /** Gives the address to this machine and takes it from another one. Throws a one-line error when the cloud refuses or cannot. */
  take(signal: AbortSignal): Promise<void>
  /** Gives it back, where the cloud knows addresses that nobody has. */
  release(signal: AbortSignal): Promise<void>
}

export type Vip = NonNullable<SpecOf<typeof OperatorSpec>['vip']>

/** What reaches the API of a cloud and the metadata of the machine. */
export interface CloudAccess {
  fetch: typeof fetchText
  /** Resolves early, without an error, when aborted. */
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>
}

/** Reaches an API of JSON over HTTPS. An empty answer, as to DELETE, is an empty mapping. Undefined where it answers 404. */
export type CloudApi = (
  path: string,
  signal: AbortSignal,
  send?: { method?: 'POST' | 'DELETE'; body?: Loose },
) => Promise<Loose | undefined>

/** The API below a URL. The headers carry the token, so no error repeats them. */
export const cloudApi =
  ({ fetch }: Pick<CloudAccess, 'fetch'>, base: string, headers: Readonly<Record<string, string>>): CloudApi =>
  async (path, signal, { method, body } = {}) => {
    const url = `${base}${path}`
    const text = await fetch(url, {
      signal,
      method: method ?? 'GET',
      headers: { ...headers, Accept: 'application/json', ...(body && { 'Content-Type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    return text === undefined ? undefined : text.trim() === '' ? {} : readJson(text, `answer of "${url}"`)
  }

/** What an answer has to hold; a machine or a network that does not exist is answered with 404. */
export function held(answer: Loose | undefined, key: string, what: string): Loose {
  const value = answer?.[key]
  if (!isObject(value)) throw new Error(`shared address: the cloud has no ${what}`)
  return value
}

/** Whether a network in CIDR notation holds an address; not where the text is none. */
export function inNetwork(ip: string, network: string): boolean {
  const prefix = tryPrefix(network)
  return prefix !== undefined && containsAddress(prefix, ip)
}
