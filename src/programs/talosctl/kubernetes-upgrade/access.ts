import { type KubeClient, kubeClient } from '../../../kube/client.ts'
import { accessOf, parseKubeconfig } from '../../../kube/kubeconfig.ts'
import { formatHostPort, splitHostPort } from '../../../wire/host-port.ts'
import type { Cluster } from '../cluster.ts'
import { fetchKubeconfig } from '../kubeconfig-fetch.ts'

/** A client of the cluster's Kubernetes with the kubeconfig of a control plane, at another endpoint if one is given. */
export async function kubernetesOf(cluster: Cluster, node: string, endpoint: string | undefined): Promise<KubeClient> {
  const access = accessOf(parseKubeconfig(await fetchKubeconfig(cluster, node)))
  return kubeClient(endpoint ? { ...access, server: serverAt(endpoint) } : access)
}

/** The address of a server: `--endpoint` may be a host, with or without a port, or a URL. */
export function serverAt(endpoint: string): string {
  const { host, port } = splitHostPort(endpoint.replace(/^https:\/\//, '').replace(/\/+$/, ''), 6443)
  return `https://${formatHostPort(host, port)}`
}
