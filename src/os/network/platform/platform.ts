/** A platform: whoever runs the machine as one of many, and tells it who it is. */
import type { KnownLink } from './declare.ts'
import type { PlatformNetwork } from './platform-config.ts'

/** The ways to what a platform says. */
export interface PlatformDoor {
  /** The text at an address of the platform; undefined when there is none (404). Throws one line otherwise. */
  fetch(
    url: string,
    options?: { method?: 'GET' | 'PUT' | 'POST'; headers?: Readonly<Record<string, string>>; body?: string },
  ): Promise<string | undefined>
  /** Files of the file system with one of these labels, by name; undefined when no disk has it. */
  disk(labels: readonly string[], files: readonly string[]): Promise<ReadonlyMap<string, string> | undefined>
  /** A value that the hypervisor was given for the machine; undefined when there is none. */
  guestinfo(key: string): Promise<string | undefined>
  readonly links: readonly KnownLink[]
  /** The machine's serial number as the firmware has it, and the kernel's command line. */
  readonly serial: string
  readonly commandLine: string
}

/** What is read of a platform. */
export interface Platform {
  /** Links, addresses, routes, names, and what the machine is there. Throws when it cannot be read now. */
  network(door: PlatformDoor): Promise<PlatformNetwork>
  /** The machine configuration; undefined when none was given. */
  userData(door: Pick<PlatformDoor, 'fetch' | 'disk' | 'guestinfo' | 'serial' | 'commandLine'>): Promise<string | undefined>
  /** Tells a platform that waits for it that the machine has started. Throws when it could not be told. */
  ready?(door: Pick<PlatformDoor, 'fetch'>): Promise<void>
}
