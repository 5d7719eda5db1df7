/** The socket of the machine API in init, for processes of this machine. */
export const machineSocket = '/system/run/machined/machine.sock'
