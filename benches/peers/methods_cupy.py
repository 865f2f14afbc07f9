# CuPy's gmres and cg, an iteration each, on the model problems of benches/methods_device.rs.
import time, cupy as cp, cupyx.scipy.sparse as sp, cupyx.scipy.sparse.linalg as la, numpy as np, scipy.sparse as ss
def lap(dims):
    n=int(np.prod(dims)); diags=[2.0*len(dims)*np.ones(n)]; offs=[0]; s=1
    for d in reversed(dims):
        v=-np.ones(n); v[((np.arange(n)//s)%d)==d-1]=0
        diags+=[v[:n-s],v[:n-s]]; offs+=[s,-s]; s*=d
    return sp.csr_matrix(ss.diags(diags,offs,format='csr'))
def timed(f,a,b):
    f(a); cp.cuda.Device().synchronize()
    t=time.time(); f(a); cp.cuda.Device().synchronize(); t1=time.time()-t
    t=time.time(); f(b); cp.cuda.Device().synchronize(); t2=time.time()-t
    return (t2-t1)/(b-a)*1e6
for dims in [(256,256,256),(512,512)]:
    A=lap(dims); n=A.shape[0]; b=A@cp.random.rand(n)
    for name,f in [('gmres(30)',lambda it: la.gmres(A,b,rtol=1e-30,restart=30,maxiter=it)),('cg',lambda it: la.cg(A,b,rtol=1e-30,maxiter=it))]:
        try: print('cupy',dims,name,'%.1f us/iteration'%timed(f,60,120),flush=True)
        except Exception as e: print('cupy',dims,name,e,flush=True)
