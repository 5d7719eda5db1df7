/** A platform: the environment that runs the machine (a cloud or a hypervisor) and provides its metadata. */
import type { KnownLink } from './declare.ts'
import type { PlatformNetwork } from './platform-config.ts'

/** Access to the metadata of a platform. */
export interface PlatformTransport {
  /** Fetches text. Returns undefined on 404. Throws a one-line error otherwise. */
  fetch(
    url: string,
    options?: {
      method?: 'GET' | 'PUT' | 'POST'
      headers?: Readonly<Record<string, string>>
      body?: string
      /** From a source port below 1024; GET only. */
      privileged?: boolean
    },
  ): Promise<string | undefined>
  /** Files of the file system with one of these labels, by name; undefined if no disk has the label. */
  disk(labels: readonly string[], files: readonly string[]): Promise<ReadonlyMap<string, string> | undefined>
  /** Files of a medium in an optical drive with a file system of this type, by name; undefined if no drive has one of them. */
  optical(type: string, files: readonly string[]): Promise<ReadonlyMap<string, string> | undefined>
  /** A guestinfo value of the hypervisor; undefined if not set. */
  guestinfo(key: string): Promise<string | undefined>
  readonly links: readonly KnownLink[]
  /** The machine's SMBIOS serial number, and the kernel command line. */
  readonly serial: string
  readonly commandLine: string
}

/** A platform driver. */
export interface Platform {
  /** The network configuration and metadata. Throws if it cannot be read now. */
  network(transport: PlatformTransport): Promise<PlatformNetwork>
  /** The machine configuration; undefined if there is none. */
  userData(
    transport: Pick<PlatformTransport, 'fetch' | 'disk' | 'optical' | 'guestinfo' | 'serial' | 'commandLine'>,
  ): Promise<string | undefined>
  /** Reports readiness to a platform that waits for it. Throws if the report fails. */
  ready?(transport: Pick<PlatformTransport, 'fetch'>): Promise<void>
  /** The kernel parameter with the address that expects events of the machine. */
  readonly eventsParameter?: string
}
