/** Addresses that control planes share: they move, so no node is known by them. */

/** The shared addresses of a configuration, in its old and its new form. */
export function sharedAddresses(
  interfaces: readonly Readonly<Record<string, any>>[] | undefined,
  documents: readonly Readonly<Record<string, any>>[],
): string[] {
  const old = (interfaces ?? [])
    .flatMap((device) => [device, ...(device.vlans ?? [])])
    .flatMap(({ vip }) => (vip?.ip ? [String(vip.ip)] : []))
  const documented = documents.flatMap(({ kind, name }) => (kind === 'Layer2VIPConfig' || kind === 'HCloudVIPConfig' ? [String(name)] : []))
  return [...new Set([...old, ...documented])].map((ip) => `${ip}/${ip.includes(':') ? 128 : 32}`)
}
