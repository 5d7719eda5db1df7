/** The Kubernetes service through which pods reach the machine API of the control plane nodes. */
export const machineApiService = { name: 'talos', namespace: 'default', port: 50000 } as const

/** The names by which pods call it; `talos.default` is the endpoint in their client configurations. */
export const machineApiNames: readonly string[] = [machineApiService.name, `${machineApiService.name}.${machineApiService.namespace}`]
