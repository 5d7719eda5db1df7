/** Backups that the control planes of another cluster keep: they are sent to its machine API. */
import { parseCertificate } from '../../../pki/certificate.ts'
import { tlsKey } from '../../../pki/key.ts'
import { type Channel, connect } from '../../../rpc/client/channel.ts'
import type { Target } from '../../../rpc/client/dial.ts'
import { ichor } from '../../../rpc/enums.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { formatHostPort, splitHostPort } from '../../../wire/host-port.ts'
import type { Kernel } from '../../kernel.ts'
import type { Outbound } from '../../outbound.ts'
import type { EtcdBackupTarget } from '../documents/etcd-backup.ts'
import { backupNameOf } from '../resources/backup-name.ts'
import { chunksOf } from './files.ts'
import { type BackupTarget, mostForeign, type StoredBackup, type TakenBackup, type TargetContents } from './target.ts'

/** The peer. */
export interface PeerPlace {
  readonly name: string
  /** Digits of the cluster whose backups these are. */
  readonly cluster: string
  readonly endpoints: readonly PeerEndpoint[]
  /** When the certificate for it expires. */
  readonly expires: Date
}

/** One control plane of the peer. */
export interface PeerEndpoint {
  readonly address: string
  /** Where to connect now. */
  target(): Target
}

/** The port of the machine API. */
const apiPort = 50_000
/** Milliseconds: for a connection, for a call that reads no file, and for one that does. */
const [connectTimeout, callLimit, listLimit] = [10_000, 30_000, 50_000]

/** The control planes that a configuration names. */
export function peerPlace(
  { endpoints: named = [], ca = '', crt = '', key = '' }: NonNullable<EtcdBackupTarget['peer']>,
  outbound: Pick<Outbound, 'proxy'>,
): Pick<PeerPlace, 'endpoints' | 'expires'> {
  const pem = (base64: string) => Buffer.from(base64, 'base64').toString()
  const endpoints = named.map((endpoint) => {
    const { host, port } = splitHostPort(endpoint, apiPort)
    const address = formatHostPort(host, port)
    return {
      address,
      target() {
        const proxy = outbound.proxy(new URL(`https://${address}`))
        const tls = { ca: pem(ca), cert: pem(crt), key: tlsKey(pem(key)) }
        return { address, tls, ...(proxy && { proxy: proxy.href }) }
      },
    }
  })
  return { endpoints, expires: parseCertificate(pem(crt)).notAfter }
}

/** Backups of this cluster on the control planes of another one, which deletes old ones by its own rules. */
export class PeerTarget implements BackupTarget {
  readonly name: string
  readonly prunesItself = true
  readonly expires: Date
  readonly #place: PeerPlace
  readonly #files: Pick<Kernel['files'], 'readSlice'>

  constructor(place: PeerPlace, files: Pick<Kernel['files'], 'readSlice'>) {
    this.name = place.name
    this.expires = place.expires
    this.#place = place
    this.#files = files
  }

  async contents(signal: AbortSignal): Promise<TargetContents> {
    const backups = new Map<string, StoredBackup>()
    const foreign = new Set<string>()
    const problems: string[] = []
    for (const found of await Promise.all(this.#place.endpoints.map((endpoint) => this.#held(endpoint, signal)))) {
      if ('problem' in found) problems.push(found.problem)
      else {
        for (const name of found.foreign) foreign.add(name)
        for (const backup of found.backups) if (backups.get(backup.name)?.state !== 'intact') backups.set(backup.name, backup)
      }
    }
    const endpoints = this.#place.endpoints.length
    if (problems.length === endpoints) throw new Error(problems.join('; '))
    return { backups: [...backups.values()], foreign: [...foreign].slice(0, mostForeign), problems }
  }

  async store(backup: TakenBackup, signal: AbortSignal): Promise<void> {
    await this.#first(signal, (channel) => this.#send(channel, backup, signal))
  }

  async *read(name: string, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
    const endpoint = await this.#first(signal, async (_, endpoint) => {
      const found = await this.#held(endpoint, signal)
      if ('problem' in found) throw new Error(found.problem)
      if (!found.backups.some((backup) => backup.name === name)) throw new Error(`it has no "${name}"`)
      return endpoint
    })
    const channel = connect(endpoint.target(), { connectTimeout })
    try {
      for await (const { bytes } of channel.serverStream('ichor.v1.EtcdBackupStoreService/Read', { name }, { signal })) yield bytes
    } finally {
      channel.close()
    }
  }

  remove(name: string): Promise<void> {
    return Promise.reject(new Error(`"${name}" is kept by another cluster, which deletes old backups itself`))
  }

  /** Sends what the peer does not have yet. */
  async #send(channel: Channel, { name, size, sha256, path }: TakenBackup, signal: AbortSignal): Promise<void> {
    const options = { deadline: callLimit, signal }
    const { messages } = await channel.unary('ichor.v1.EtcdBackupStoreService/Offer', { name, size, sha256 }, options)
    const [offered] = messages
    if (!offered) throw new Error('it did not answer how much of the backup it has')
    const { stored, offset } = offered
    if (stored) return
    const files = this.#files
    const rest = async function* () {
      yield { name, offset }
      for await (const data of chunksOf(files, path, signal, offset)) yield { data }
    }
    await channel.clientStream('ichor.v1.EtcdBackupStoreService/Append', rest(), { deadline: 0, signal })
  }

  /** Runs `act` with one endpoint after the other until it succeeds. */
  async #first<T>(signal: AbortSignal, act: (channel: Channel, endpoint: PeerEndpoint) => Promise<T>): Promise<T> {
    const problems: string[] = []
    for (const endpoint of this.#place.endpoints) {
      signal.throwIfAborted()
      let channel: Channel | undefined
      try {
        channel = connect(endpoint.target(), { connectTimeout })
        return await act(channel, endpoint)
      } catch (error) {
        problems.push(`${endpoint.address}: ${messageOf(error)}`)
      } finally {
        channel?.close()
      }
    }
    throw new Error(problems.join('; '))
  }

  async #held(endpoint: PeerEndpoint, signal: AbortSignal): Promise<Pick<TargetContents, 'backups' | 'foreign'> | { problem: string }> {
    let channel: Channel | undefined
    try {
      channel = connect(endpoint.target(), { connectTimeout })
      const { messages } = await channel.unary('ichor.v1.EtcdBackupStoreService/Held', {}, { deadline: listLimit, signal })
      const held = messages.flatMap(({ backups }) => backups)
      const own = held.flatMap(({ name, size, state }): StoredBackup[] => {
        const named = backupNameOf(name)
        return named?.cluster === this.#place.cluster ? [{ ...named, name, size, state: states.get(state) ?? 'unchecked' }] : []
      })
      const known = new Set(own.map(({ name }) => name))
      return { backups: own, foreign: held.map(({ name }) => name).filter((name) => !known.has(name)) }
    } catch (error) {
      return { problem: `${endpoint.address}: ${messageOf(error)}` }
    } finally {
      channel?.close()
    }
  }
}

const { INTACT, DAMAGED } = ichor.v1.EtcdBackup.State
const states = new Map<number, StoredBackup['state']>([
  [INTACT, 'intact'],
  [DAMAGED, 'damaged'],
])
