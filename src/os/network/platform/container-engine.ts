import { parseIp } from '../../../wire/ip.ts'
import type { Kernel } from '../../kernel.ts'

/** What a container engine gives to a node that it starts. */
export interface EngineSettings {
  readonly hostname: string
  readonly nameservers: readonly string[]
  readonly searchDomains: readonly string[]
  /** The size of the node as the provisioner names it, for example `2CPU-2048RAM`. */
  readonly instanceType?: string
}

/** Reads them before the node binds files of its own over those of the engine. */
export function engineSettings({ uts, files }: Pick<Kernel, 'uts' | 'files'>, environment = process.env): EngineSettings {
  const lines = (files.readTextIfThere('/etc/resolv.conf') ?? '').split('\n').map((line) => line.trim().split(/\s+/))
  const of = (keyword: string) => lines.flatMap(([first, ...values]) => (first === keyword ? values : []))
  return {
    hostname: uts.gethostname(),
    nameservers: of('nameserver').filter((address) => parseIp(address) !== undefined),
    searchDomains: of('search').filter((domain) => domain !== '.'),
    ...(environment.TALOSSKU && { instanceType: environment.TALOSSKU }),
  }
}
