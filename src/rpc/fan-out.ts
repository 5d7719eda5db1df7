/** Services of which apid sends one call to several nodes and merges their replies. */
const services =
  /^(machine\.MachineService|cluster\.ClusterService|inspect\.InspectService|storage\.StorageService|time\.TimeService|ichor\.v1\.\w+)\/\w+$/

/** Whether a call of this method, named as `machine.MachineService/Version`, may go to several nodes. */
export const fansOut = (method: string): boolean => services.test(method)
