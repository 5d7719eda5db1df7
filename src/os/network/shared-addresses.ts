/** Addresses shared by control plane nodes. They move between nodes, so they identify none. */

import { hostPrefix } from '../../wire/prefix.ts'
import { type Declared, findAll } from '../config/public.ts'
import { HCloudVIPConfig, Layer2VIPConfig } from './documents/vip.ts'

/** The shared addresses of a configuration, from `machine.network` and from documents. */
export function sharedAddresses(config: Declared | undefined): string[] {
  const old = (config?.machine.network?.interfaces ?? [])
    .flatMap((device) => [device, ...(device.vlans ?? [])])
    .flatMap(({ vip }) => (vip?.ip ? [vip.ip] : []))
  const documented = [Layer2VIPConfig, HCloudVIPConfig].flatMap((kind) => findAll(config, kind).flatMap(({ name }) => (name ? [name] : [])))
  return [...new Set([...old, ...documented])].map(hostPrefix)
}
