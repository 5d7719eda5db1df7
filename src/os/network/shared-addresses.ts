/** Addresses that control planes share: they move, so no node is known by them. */
import { type Declared, findAll } from '../config/declared.ts'
import { HCloudVIPConfig, Layer2VIPConfig } from './documents/vip.ts'

/** The shared addresses of a configuration, in its old and its new form. */
export function sharedAddresses(config: Declared | undefined): string[] {
  const old = (config?.machine.network?.interfaces ?? [])
    .flatMap((device) => [device, ...(device.vlans ?? [])])
    .flatMap(({ vip }) => (vip?.ip ? [vip.ip] : []))
  const documented = [Layer2VIPConfig, HCloudVIPConfig].flatMap((kind) => findAll(config, kind).flatMap(({ name }) => (name ? [name] : [])))
  return [...new Set([...old, ...documented])].map((ip) => `${ip}/${ip.includes(':') ? 128 : 32}`)
}
