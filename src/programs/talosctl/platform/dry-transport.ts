/** A platform's metadata from a server at another address, and from a folder in place of its disk. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { KnownLink } from '../../../os/network/platform/declare.ts'
import type { PlatformTransport } from '../../../os/network/platform/platform.ts'
import { fetchText } from '../../../os/network/platform/transport.ts'
import { failedWith } from '../../../wire/errno.ts'

/** Where the metadata is. */
export interface MetadataPlace {
  /** The base URL that replaces scheme, host and port of each request; without it requests go where the machine's would. */
  readonly metadata?: string | undefined
  /** The folder with the files of the platform's disk, whichever label the disk would have. */
  readonly configDrive?: string | undefined
}

/** The transport, and every text that was read through it. */
export interface DryTransport extends PlatformTransport {
  readonly texts: readonly string[]
}

/** Opens the transport that the code of a platform reads instead of the machine's. */
export function openDry(
  name: string,
  { metadata, configDrive }: MetadataPlace,
  links: readonly KnownLink[],
  signal: AbortSignal,
): DryTransport {
  const base = metadata?.replace(/\/+$/, '')
  const texts: string[] = []
  const noted = (text: string | undefined) => {
    if (text !== undefined) texts.push(text)
    return text
  }
  const file = async (folder: string, path: string) => noted(await readIfThere(join(folder, path)))
  const filesOf = async (names: readonly string[]) => {
    if (!configDrive) return undefined
    const found = new Map<string, string>()
    for (const path of names) {
      const text = await file(configDrive, path)
      if (text !== undefined) found.set(path, text)
    }
    return found
  }
  return {
    texts,
    links,
    // NoCloud learns its address from the firmware.
    serial: name === 'nocloud' && base ? `ds=nocloud-net;s=${base}/` : '',
    commandLine: '',
    async fetch(url, options) {
      // A disk alone stands for a machine whose metadata server has nothing.
      if (!base && configDrive) return undefined
      return noted(await fetchText(base && !url.startsWith(`${base}/`) ? moved(url, base) : url, { ...options, privileged: false, signal }))
    },
    disk: async (_, names) => filesOf(names),
    optical: async (_, names) => filesOf(names),
    guestinfo: async (key) => (configDrive ? (await file(configDrive, key))?.trim() : undefined),
  }
}

function moved(url: string, base: string): string {
  const { pathname, search } = new URL(url)
  return `${base}${pathname}${search}`
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (failedWith(error, 'ENOENT')) return undefined
    throw error
  }
}

/** Links with the hardware addresses that the metadata names, in that order: a machine there would have them. */
export function linksIn(texts: readonly string[]): KnownLink[] {
  const whole = texts.join('\n').toLowerCase()
  const found = [...whole.matchAll(/\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b|(?<="macaddress":\s?")[0-9a-f]{12}(?=")/g)]
  const addresses = new Set(found.map(([mac]) => mac.replaceAll(':', '').replace(/(..)(?!$)/g, '$1:')))
  const known = addresses.size > 0 ? [...addresses] : ['02:00:00:00:00:01']
  return known.slice(0, 64).map((hardwareAddress, place) => ({ name: `eth${place}`, hardwareAddress, index: place + 2 }))
}
