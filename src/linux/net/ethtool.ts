/** Network interfaces: reads and changes what ethtool(8) does, over generic netlink. */

import { failedWith } from '../../wire/errno.ts'
import {
  type EthernetChannels,
  type EthernetFeatures,
  type EthernetRings,
  ethtoolFamily,
  ethtoolMessage,
  type NamedBit,
  readChannels,
  readFeatureNames,
  readFeatures,
  readLinkInfo,
  readLinkModes,
  readLinkState,
  readRings,
  readWake,
  writeChannels,
  writeEthtoolQuery,
  writeFeatureNamesQuery,
  writeFeatures,
  writeRings,
  writeWake,
} from '../../wire/netlink/ethtool.ts'
import { genericControl, readFamilyId, writeFamilyQuery } from '../../wire/netlink/generic.ts'
import { SystemError } from '../system-error.ts'
import { NetlinkSocket, netlinkProtocol } from './netlink-socket.ts'

export type { EthernetChannels, EthernetFeatures, EthernetRings }

/** The settings of an interface; those its driver does not support are absent. */
export interface Ethernet {
  linkUp?: boolean | undefined
  port?: number | undefined
  speed?: number
  duplex?: number | undefined
  ours: NamedBit[]
  peer: NamedBit[]
  rings?: EthernetRings | undefined
  channels?: EthernetChannels | undefined
  wake?: string[] | undefined
  features?: EthernetFeatures | undefined
  /** Every feature that this kernel knows, in its order. */
  featureNames: string[]
}

/** A change of an interface. */
export interface EthernetChange {
  rings?: EthernetRings
  channels?: EthernetChannels
  wake?: readonly string[]
  features?: Readonly<Record<string, boolean>>
}

/** The interfaces of a network namespace. */
class EthernetInterfaces implements Disposable {
  readonly #socket: NetlinkSocket
  readonly #family: number
  #names?: string[]

  constructor({ netns = '' } = {}) {
    this.#socket = new NetlinkSocket(netlinkProtocol.generic, { netns })
    try {
      this.#family = this.#familyId()
    } catch (error) {
      this.#socket.close()
      throw error
    }
  }

  #familyId(): number {
    try {
      const [answer] = this.#socket.request('find family', `"${ethtoolFamily}"`, genericControl.family, writeFamilyQuery(ethtoolFamily))
      if (answer) return readFamilyId(answer.body)
    } catch (error) {
      if (!failedWith(error, 'ENOENT')) throw error
    }
    throw new SystemError('find family', 'EOPNOTSUPP', `"${ethtoolFamily}"`, 'this kernel has no ethtool over netlink')
  }

  /** All settings of a link; undefined when it does not exist. */
  read(index: number): Ethernet | undefined {
    try {
      const modes = this.#query(ethtoolMessage.linkModes, index, readLinkModes)
      return {
        linkUp: this.#query(ethtoolMessage.linkState, index, readLinkState)?.up,
        port: this.#query(ethtoolMessage.linkInfo, index, readLinkInfo)?.port,
        ...(modes ?? { ours: [], peer: [] }),
        rings: this.#query(ethtoolMessage.rings, index, readRings),
        channels: this.#query(ethtoolMessage.channels, index, readChannels),
        wake: this.#query(ethtoolMessage.wake, index, readWake),
        features: this.#query(ethtoolMessage.features, index, readFeatures),
        featureNames: this.featureNames(),
      }
    } catch (error) {
      if (failedWith(error, 'ENODEV')) return undefined
      throw error
    }
  }

  /** Changes a link, one setting after the other. Throws SystemError, with the kernel's message where it has one. */
  change(index: number, { rings, channels, wake, features }: EthernetChange): void {
    const set = (what: string, body: Uint8Array) => this.#socket.request(`set ${what}`, String(index), this.#family, body)
    if (features && Object.keys(features).length > 0) set('features', writeFeatures(index, features))
    if (rings && Object.keys(rings).length > 0) set('rings', writeRings(index, rings))
    if (channels && Object.keys(channels).length > 0) set('channels', writeChannels(index, channels))
    if (wake) set('wake on LAN', writeWake(index, wake))
  }

  /** Names of features, in the order of their bits. */
  featureNames(): string[] {
    this.#names ??= this.#socket
      .request('list features', '', this.#family, writeFeatureNamesQuery())
      .flatMap(({ body }) => readFeatureNames(body))
    return this.#names
  }

  #query<T>(message: number, index: number, read: (body: Uint8Array) => T): T | undefined {
    try {
      const [answer] = this.#socket.request('query ethtool', String(index), this.#family, writeEthtoolQuery(message, index))
      return answer && read(answer.body)
    } catch (error) {
      if (failedWith(error, 'EOPNOTSUPP')) return undefined
      throw error
    }
  }

  [Symbol.dispose](): void {
    this.#socket.close()
  }
}

/** Opens the interfaces of a network namespace. */
export const openEthernet = (options: { netns?: string } = {}): EthernetInterfaces => new EthernetInterfaces(options)
