import type { Cluster } from './cluster.ts'

/** The admin kubeconfig of the cluster, as YAML. */
export const fetchKubeconfig = (cluster: Cluster, node?: string): Promise<string> =>
  kubeconfigIn(cluster.stream('machine.MachineService/Kubeconfig', {}, { node, timeout: 60_000 }))

/** The kubeconfig in the parts of a reply: a .tar.gz of one file, or the file itself. */
export async function kubeconfigIn(parts: AsyncIterable<{ readonly bytes: Uint8Array }>): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const { bytes } of parts) chunks.push(bytes)
  const all = Buffer.concat(chunks)
  const gzip = all[0] === 0x1f && all[1] === 0x8b
  if (!gzip) return all.toString('utf8')
  const { fileFromTarGz } = await import('./archive/one-file.ts')
  return new TextDecoder().decode(await fileFromTarGz(all, 'kubeconfig'))
}
