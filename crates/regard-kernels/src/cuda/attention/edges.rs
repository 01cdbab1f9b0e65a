//! The edges of a graph on a GPU: copied once, for all calls that follow.

use crate::cuda::buffer::CudaBuffer;
use crate::cuda::device::Device;
use crate::error::Error;
use crate::spec::Edges;
use std::sync::{Arc, Mutex, PoisonError};

/// The copy on the GPU that asked last, if one has; copies of the edges share it.
#[derive(Clone, Default)]
pub(crate) struct EdgesOnGpu {
    last: Arc<Mutex<Option<Arc<KeptEdges>>>>,
}

/// Where the lists lie, and what they lie in.
pub(in crate::cuda) struct KeptEdges {
    /// By query: where each one's keys begin, and the keys; by key: where each one's queries begin, the queries, and
    /// the edges' places by query; then what dropout draws by, or 0.
    pub(in crate::cuda) at: [u64; 6],
    device: Arc<Device>,
    _lists: Vec<CudaBuffer>,
}

impl std::fmt::Debug for EdgesOnGpu {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("EdgesOnGpu")
    }
}

impl EdgesOnGpu {
    /// The copy that is there, or a new one. A stream of a caller's may be gone before the edges are: for it a copy is
    /// made at each call. The device was entered.
    pub(in crate::cuda) fn of(
        &self,
        device: &Arc<Device>,
        edges: &Edges,
    ) -> Result<Arc<KeptEdges>, Error> {
        if !device.is_own {
            return Ok(Arc::new(KeptEdges::of(device, edges)?));
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = last.as_ref().filter(|kept| kept.device.is_same(device)) {
            return Ok(kept.clone());
        }
        Ok(last.insert(Arc::new(KeptEdges::of(device, edges)?)).clone())
    }
}

impl KeptEdges {
    fn of(device: &Arc<Device>, edges: &Edges) -> Result<Self, Error> {
        let mut lists = Vec::new();
        let mut keep = |list: CudaBuffer| {
            lists.push(list);
            lists.last().map_or(0, CudaBuffer::address)
        };
        let (column_start, queries, positions) = edges.by_key();
        let wide = |starts: &[usize]| starts.iter().map(|&n| n as u64).collect::<Vec<u64>>();
        let at = [
            keep(CudaBuffer::of(device, &wide(edges.starts()))?),
            keep(CudaBuffer::of(device, edges.all_keys())?),
            keep(CudaBuffer::of(device, &wide(column_start))?),
            keep(CudaBuffer::of(device, queries)?),
            keep(CudaBuffer::of(device, positions)?),
            match edges.has_repeats() {
                true => keep(CudaBuffer::of(device, edges.draws())?),
                false => 0,
            },
        ];
        Ok(Self { at, device: device.clone(), _lists: lists })
    }
}
