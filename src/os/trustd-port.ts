/** Where trustd of a control plane answers. */
export const trustdPort = 50001
